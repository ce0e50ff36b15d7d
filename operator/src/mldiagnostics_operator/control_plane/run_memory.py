"""Memory of one run; pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics_api.reports import MAX_CONFIG_BYTES

from mldiagnostics_operator.control_plane.event_log import EventLog, ProcessName
from mldiagnostics_operator.control_plane.journal_page import JournalPage, write_state
from mldiagnostics_operator.control_plane.limits import MAX_EVENTS_OF_RUN, MAX_INCARNATIONS_OF_HOST
from mldiagnostics_operator.control_plane.process_memory import PeerFacts, ProcessMemory
from mldiagnostics_operator.control_plane.run_view import reported_run

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mldiagnostics.control_plane.packing import Entry
    from mldiagnostics_api.reported import ReportedGoodput, ReportedRun, RunKey
    from mldiagnostics_api.reports import Phase, Report

    from mldiagnostics_operator.control_plane.journal_page import JournalContent
    from mldiagnostics_operator.control_plane.sender import Sender

MAX_ALIASES: Final = 16


class RunMemory:
    """The processes of one run, and the facts that hold for all."""

    def __init__(self, key: RunKey, owner: str, first_received: float) -> None:
        self.key = key
        self.owner = owner
        self._first_received = first_received
        self._processes: dict[str, ProcessMemory] = {}
        self._logs: dict[str, EventLog] = {}
        self._peer: PeerFacts | None = None
        self._configs: tuple[tuple[int, float, int], Mapping[str, Mapping[str, Any]]] | None = None
        """The newest configurations, after their place in the order of reports."""
        self._goodput: ReportedGoodput | None = None
        self._revision = 0
        self._view: ReportedRun | None = None

    @property
    def process_count(self) -> int:
        """Processes in memory."""
        return len(self._processes)

    @property
    def open_bytes(self) -> int:
        """Bytes of event lines in memory."""
        return sum(log.open_bytes for log in self._logs.values())

    def knows(self, report: Report) -> bool:
        """Return whether the process has reported before."""
        return report.incarnation in self._processes

    def persisted(self, incarnation: str) -> tuple[int, int]:
        """Return the newest persisted sequence of a process, and its persisted events."""
        process, log = self._processes.get(incarnation), self._logs.get(incarnation)
        return process.persisted_sequence if process else 0, log.persisted if log else 0

    @property
    def accepts_events(self) -> bool:
        """Whether the run has room for more goodput events."""
        return self._room > 0

    @property
    def _room(self) -> int:
        return MAX_EVENTS_OF_RUN - sum(each.known for each in self._logs.values())

    def known_events(self, incarnation: str) -> int:
        """Return how many events of a process are known."""
        log = self._logs.get(incarnation)
        return log.known if log else 0

    def apply(self, report: Report, sender: Sender, received: float, entries: Sequence[Entry]) -> bool:
        """Apply a report; return whether something changed that the journal needs."""
        process = self._processes.get(report.incarnation)
        if process is None:
            process = self._processes[report.incarnation] = ProcessMemory(received)
            self._forget_replaced(report)
        changed = process.apply(report, sender, received)
        if report.configs is not None:
            order = (report.attempt, process.first_received, report.sequence)
            if self._configs is None or order > self._configs[0]:
                self._configs = order, _bounded(report.configs.model_dump())
                changed = True
        if report.events is not None:
            changed = self._add_events(report, entries) or changed
        if changed:
            self._touch()
        return changed

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
                configs=self._configs[1] if self._configs else {},
                goodput=self._goodput,
            )
        return self._view

    def page(self, mark: str) -> JournalPage:
        """Return what the journal has to write now; its state gets a mark."""
        segments = {name: each for name, log in self._logs.items() if (each := log.segment(self._name(name)))}
        sequences = {name: process.sequence for name, process in self._processes.items()}
        return JournalPage(write_state(self.key, mark, self._facts()), segments, sequences)

    def note_persisted(self, page: JournalPage, foreign: Collection[str] = ()) -> None:
        """Note that a page was written; see `ReportTable.persisted`."""
        for name, sequence in page.sequences.items():
            if process := self._processes.get(name):
                process.persisted_sequence = max(process.persisted_sequence, sequence)
        for name, segment in page.segments.items():
            if log := self._logs.get(name):
                log.written(segment, foreign=name in foreign)

    def restore(self, content: JournalContent) -> None:
        """Add what the journal has; newer reports win."""
        state = content.state
        self.owner = content.owner
        self._first_received = min(self._first_received, content.first_received)
        for name, saved in state.get("processes", {}).items():
            restored = ProcessMemory.restored(saved)
            present = self._processes.get(name)
            if present is None:
                self._processes[name] = restored
            else:
                present.join(restored)
        for name, count in content.events.items():
            present_log = self._logs.get(name)
            if present_log is None or present_log.known < count:
                self._logs[name] = EventLog(count)
        if saved_peer := state.get("peer"):
            peer = PeerFacts(**saved_peer | {"aliases": tuple(saved_peer["aliases"])})
            self._peer = max(peer, self._peer or peer, key=lambda each: each.received)
        if saved_configs := state.get("configs"):
            order = tuple(saved_configs["order"])
            if self._configs is None or order > self._configs[0]:
                self._configs = order, saved_configs["value"]
        self._touch()

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

    def _add_events(self, report: Report, entries: Sequence[Entry]) -> bool:
        events = report.events
        if events is None or not entries:
            return False
        log = self._logs.setdefault(report.incarnation, EventLog())
        most = max(0, log.known - events.first) + max(self._room, 0)
        return log.add(self._name(report.incarnation), events.first, entries[:most]) > 0

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
            log = self._logs.get(name)
            if log is None or log.known == log.persisted:
                del self._processes[name]
                self._logs.pop(name, None)

    def _facts(self) -> Mapping[str, Any]:
        """Return the facts that `restore` reads."""
        return {
            "owner": self.owner,
            "firstReceived": self._first_received,
            "processes": {name: process.saved() for name, process in self._processes.items()},
            "peer": self._peer,
            "configs": {"order": self._configs[0], "value": self._configs[1]} if self._configs else None,
        }


def _bounded(configs: dict[str, dict[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Return the configurations without the sections that exceed the limit."""
    for section in ("user", "hardware", "software"):
        if len(orjson.dumps(configs, option=orjson.OPT_NON_STR_KEYS)) > MAX_CONFIG_BYTES:
            configs[section] = {}
    return configs
