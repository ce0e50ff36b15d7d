"""Memory of one run; pure."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mldiagnostics_api.reports.models import INTERVAL_S
from mldiagnostics_api.reports.shown_configs import ShownConfigs
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_ALIASES

from mldiagnostics_operator.control_plane.limits import (
    MAX_INCARNATIONS_OF_HOST,
    MAX_PROCESSES_OF_RUN,
    PROCESSES_OF_SLICE,
    RUN_BYTES,
)
from mldiagnostics_operator.control_plane.memory.event_log import ProcessName
from mldiagnostics_operator.control_plane.memory.journal_page import (
    EventsMoment,
    JournalPage,
    process_lines,
    write_state,
)
from mldiagnostics_operator.control_plane.memory.process_memory import PeerFacts, ProcessMemory
from mldiagnostics_operator.control_plane.memory.run_events import RunEvents
from mldiagnostics_operator.control_plane.memory.run_view import reported_run

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping

    from mldiagnostics_api.reports.models import Phase, Report
    from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.identity.sender import Sender
    from mldiagnostics_operator.control_plane.memory.journal_page import JournalContent
    from mldiagnostics_operator.control_plane.memory.packed_events import PackedEvents
    from mldiagnostics_operator.control_plane.memory.saved_state import SavedProcess

T = TypeVar("T")

LEFT_OUT_S: Final = 60.0
"""A part that was not kept is named in the status for so long."""


class Change(Enum):
    """Kind of change that a report makes to its run."""

    NONE = auto()
    FACTS = auto()
    PHASE = auto()
    """People wait for it: a process is new, has made its first step, or has another phase or attempt."""


class Extras(NamedTuple):
    """The large parts of a report, prepared in slices of work."""

    events: PackedEvents | None = None
    configs: ShownConfigs | None = None


class WrittenFile(NamedTuple):
    """A file of events in the journal."""

    size: int
    foreign: bool = False
    """Whether another leader had written it."""


class RunMemory:
    """The processes of one run, and the facts that hold for all."""

    def __init__(self, key: RunKey, owner: str, first_received: float) -> None:
        self.key = key
        self.owner = owner
        self._first_received = first_received
        self._processes: dict[str, ProcessMemory] = {}
        self.events = RunEvents()
        self._peer: PeerFacts | None = None
        self._configs: tuple[tuple[int, float, int], ShownConfigs] | None = None
        """The newest configurations, after their place in the order of reports."""
        self._left_out: dict[str, float] = {}
        """When a part of a report was not kept, by its name."""
        self.size = RUN_BYTES
        """Bytes in memory, without event lines."""
        self._goodput: ReportedGoodput | None = None
        self._revision = 0
        self._view: ReportedRun | None = None

    @property
    def process_count(self) -> int:
        """Processes in memory."""
        return len(self._processes)

    def knows(self, report: Report) -> bool:
        """Return whether the process has reported before."""
        return report.incarnation in self._processes

    def persisted(self, incarnation: str) -> tuple[int, int]:
        """Return the newest persisted sequence of a process, and its persisted events."""
        process = self._processes.get(incarnation)
        return process.persisted_sequence if process else 0, self.events.persisted(incarnation)

    def interval_s(self, incarnation: str) -> int:
        """Return when the next report of a process was requested."""
        process = self._processes.get(incarnation)
        return process.host.interval_s if process else INTERVAL_S

    def reporting(self, now: float) -> int:
        """Return how many processes report."""
        return sum(process.is_reporting(now) for process in self._processes.values())

    def apply(
        self, report: Report, sender: Sender, received: float, extras: Extras, *, room: int, interval_s: int
    ) -> Change:
        """Apply a report.

        Args:
            report: The report.
            sender: Its sender.
            received: When it arrived, in Unix seconds.
            extras: Its events and configurations.
            room: Bytes by which the run may grow, beyond a new process.
            interval_s: When the next report of the process is requested.

        Returns:
            A change that the journal needs, if there is one.
        """
        process = self._processes.get(report.incarnation)
        if process is None:
            process = self._processes[report.incarnation] = ProcessMemory(received)
            self.size += process.size
            self._forget_replaced(report)
        before = process.size
        is_new = changed = process.apply(report, sender, received, room=room, interval_s=interval_s)
        self.size += process.size - before
        missing = set[str]()
        if is_new and process.is_lean:
            missing.add("profiles and metrics")
        if extras.configs is not None:
            order = (report.attempt, process.first_received, report.sequence)
            if self._configs is None or order > self._configs[0]:
                changed = self._set_configs(order, extras.configs, room) or changed
                missing |= set() if self._configs and self._configs[0] == order else {"configurations"}
        if extras.events is not None:
            changed = self.events.add(self._name(report.incarnation), extras.events) or changed
            if not extras.events.whole:
                missing.add("goodput events")
        self.events.note_sent(report, process.first_received, extras.events)
        if is_new:
            self._note_missing(missing, received)
            if not missing:
                process.whole = report.sequence
        if not changed:
            return Change.NONE
        self._touch()
        return Change.PHASE if is_new and process.turned else Change.FACTS

    def _set_configs(self, order: tuple[int, float, int], configs: ShownConfigs, room: int) -> bool:
        """Keep newer configurations if they fit; return whether they do."""
        growth = configs.size - (self._configs[1].size if self._configs else 0)
        if growth > room:
            return False
        self._configs = order, configs
        self.size += growth
        return True

    def _note_missing(self, missing: Collection[str], received: float) -> None:
        if missing or self._left_out:
            recent = {part: at for part, at in self._left_out.items() if received - at < LEFT_OUT_S}
            self._left_out = recent | dict.fromkeys(sorted(missing), received)

    def apply_peer(self, *, alias: str, name: str, phase: Phase | None, storage: str, received: float) -> bool:
        """Apply what the peer's client reports; return whether something changed."""
        before = self._peer or PeerFacts()
        aliases = before.aliases if alias in before.aliases or not alias else (*before.aliases, alias)[-MAX_ALIASES:]
        facts = replace(
            before,
            aliases=aliases,
            name=name or before.name,
            phase=phase or before.phase,
            storage=storage or before.storage,
            ended=received if phase in {"Completed", "Failed"} else None if phase else before.ended,
        )
        changed = facts != before
        self._peer = replace(facts, received=received)
        if changed:
            self._touch()
        return changed

    def set_goodput(self, goodput: ReportedGoodput) -> bool:
        """Set the account; return whether it differs."""
        if goodput == self._goodput:
            return False
        self._goodput = goodput
        self._touch()
        return True

    def view(self) -> ReportedRun:
        """Return everything that is known about the run."""
        if self._view is None:
            self._view = reported_run(
                self.key,
                self._processes.values(),
                self._peer or PeerFacts(),
                revision=self._revision,
                first_received=self._first_received,
                configs=self._configs[1] if self._configs else ShownConfigs(),
                left_out=tuple(self._left_out),
                events_until=self.events.until.sent,
                goodput=self._goodput,
            )
        return self._view

    def page(self, mark: str) -> Generator[None, None, JournalPage]:
        """Return what the journal has to write now; its state gets a mark.

        It yields after each slice of work.
        """
        until = self.events.sent
        segments = self.events.segments(self._name)
        sequences, saved = dict[str, int](), list[bytes]()
        for names in batched(list(self._processes), PROCESSES_OF_SLICE):
            present = {name: process for name in names if (process := self._processes.get(name))}
            sequences |= {name: process.whole for name, process in present.items()}
            saved += process_lines({name: process.saved() for name, process in present.items()})
            yield
        facts = {**self._facts(), "eventsUntil": tuple(until)}
        return JournalPage(write_state(self.key, mark, facts, saved), segments, sequences, until)

    def note_persisted(self, page: JournalPage, files: Mapping[str, WrittenFile], now: float) -> None:
        """Note that a page was written; see `ReportTable.persisted`."""
        for name, sequence in page.sequences.items():
            if process := self._processes.get(name):
                process.persisted_sequence = max(process.persisted_sequence, sequence)
        for name, segment in page.segments.items():
            self.events.written(name, segment, size=files[name].size, now=now, foreign=files[name].foreign)
        self._note_events_until(page.events_until)

    def restore_processes(self, saved: Mapping[str, SavedProcess], listening_since: float) -> None:
        """Add some processes of the journal; newer reports win.

        Those that a run has no room for are left out.

        Args:
            saved: The processes, by incarnation.
            listening_since: `ReportTable.listening_since`.
        """
        for name, each in saved.items():
            restored = ProcessMemory.restored(each, listening_since)
            present = self._processes.get(name)
            if present is None and len(self._processes) >= MAX_PROCESSES_OF_RUN:
                continue
            before = present.size if present else 0
            if present is None:
                present = self._processes[name] = restored
            else:
                present.join(restored)
            self.size += present.size - before
        self._touch()

    def restore_facts(self, content: JournalContent) -> None:
        """Add the facts of the journal, after its processes; newer reports win."""
        facts = content.state.facts
        self.owner = content.owner
        self._first_received = min(self._first_received, facts.first_received)
        self.events.restore({name: number for name, number in content.events.items() if name in self._processes})
        if facts.peer is not None:
            peer = PeerFacts(**dict(facts.peer))
            self._peer = max(peer, self._peer or peer, key=lambda each: each.received)
        saved = facts.configs
        if saved is not None and (self._configs is None or saved.order > self._configs[0]):
            configs = ShownConfigs({section: texts for section, texts in saved.value.items() if texts}, saved.omitted)
            self.size += configs.size - (self._configs[1].size if self._configs else 0)
            self._configs = saved.order, configs
        self._note_events_until(_events_moment(facts.events_until))
        self._touch()

    def _note_events_until(self, until: EventsMoment) -> None:
        if self.events.note_until(until):
            self._view = None

    def _touch(self) -> None:
        self._revision += 1
        self._view = None

    def _name(self, incarnation: str) -> ProcessName:
        process = self._processes[incarnation]
        return ProcessName(
            run_id=self.key.run_id,
            incarnation=incarnation,
            attempt=process.host.attempt,
            rank=process.host.rank or 0,
        )

    def _forget_replaced(self, report: Report) -> None:
        """Forget the oldest processes of a rank that restarts again and again."""
        rank = report.rank
        if rank is None:
            return
        same = [
            (each.order, name) for name, each in self._processes.items() if each.host.rank == rank and each.sequence
        ]
        same.sort()
        for _, name in same[: -MAX_INCARNATIONS_OF_HOST or None]:
            if self.events.forget(name):
                self.size -= self._processes.pop(name).size

    def _facts(self) -> Mapping[str, Any]:
        """Return the facts that `restore` reads."""
        return {
            "owner": self.owner,
            "firstReceived": self._first_received,
            "peer": self._peer,
            "configs": self._saved_configs(),
        }

    def _saved_configs(self) -> Mapping[str, Any] | None:
        if self._configs is None:
            return None
        order, configs = self._configs
        return {"order": order, "value": configs.sections, "omitted": configs.omitted}


def _events_moment(saved: float | tuple[()] | tuple[int, float, int, float]) -> EventsMoment:
    """Return the moment that a journal has; earlier versions wrote its seconds alone."""
    return EventsMoment(*saved) if isinstance(saved, tuple) else EventsMoment(sent=saved)


def batched(names: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` names."""
    left = iter(names)
    while batch := list(islice(left, size)):
        yield batch
