"""Memory of one run; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics_api.reported import ReportedRun, ReportedSession
from mldiagnostics_api.reports import MAX_CONFIG_BYTES

from mldiagnostics_operator.control_plane.event_log import EventLog, ProcessName, Segment
from mldiagnostics_operator.control_plane.limits import (
    MAX_EVENTS_OF_RUN,
    MAX_INCARNATIONS_OF_HOST,
    MAX_SESSIONS_OF_RUN,
    SUPERSEDED_S,
)
from mldiagnostics_operator.control_plane.process_memory import LeaderFacts, PeerFacts, ProcessMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mldiagnostics.control_plane.packing import Entry
    from mldiagnostics_api.reported import ReportedGoodput, ReportedHost, RunKey
    from mldiagnostics_api.reports import Phase, Report

    from mldiagnostics_operator.control_plane.sender import Sender

STATE_VERSION: Final = 1
MAX_ALIASES: Final = 16


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Changes of a run that the journal has to write."""

    state: bytes
    """The whole state, as JSON."""
    segments: Mapping[str, Segment]
    """New events, by incarnation."""
    sequences: Mapping[str, int]
    """The newest sequence in `state`, by incarnation."""


@dataclass(frozen=True, slots=True)
class JournalContent:
    """Content of the journal of a run."""

    owner: str
    first_received: float
    state: Mapping[str, Any]
    events: Mapping[str, int]
    """Number of persisted events, by incarnation."""


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
            self._view = self._make_view()
        return self._view

    def page(self) -> JournalPage:
        """Return what the journal has to write now."""
        segments = {name: each for name, log in self._logs.items() if (each := log.segment(self._name(name)))}
        sequences = {name: process.sequence for name, process in self._processes.items()}
        return JournalPage(self._state(), segments, sequences)

    def note_persisted(self, page: JournalPage) -> None:
        """Note that a page was written."""
        for name, sequence in page.sequences.items():
            if process := self._processes.get(name):
                process.persisted_sequence = max(process.persisted_sequence, sequence)
        for name, segment in page.segments.items():
            if log := self._logs.get(name):
                log.written(segment)

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
        if self._peer is None and state.get("peer"):
            self._peer = PeerFacts(**state["peer"] | {"aliases": tuple(state["peer"]["aliases"])})
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
        room = MAX_EVENTS_OF_RUN - sum(each.known for each in self._logs.values())
        known = log.known
        most = max(0, known - events.first) + max(room, 0)
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

    def _make_view(self) -> ReportedRun:
        processes = sorted(self._processes.values(), key=lambda each: each.order)
        leaders = [each for each in processes if each.leader]
        process = leaders[-1] if leaders else None
        leader = process.leader if process and process.leader else LeaderFacts()
        host = process.host if process else None
        peer = self._peer or PeerFacts()
        return ReportedRun(
            key=self.key,
            revision=self._revision,
            name=leader.name or peer.name,
            group=leader.group,
            storage=leader.storage or peer.storage,
            aliases=peer.aliases,
            attempt=max((each.host.attempt for each in processes), default=0),
            world_size=process.world_size if process else None,
            phase=host.phase if host else peer.phase,
            reason=host.reason if host else "",
            message=host.message if host else "",
            step=host.step if host else None,
            step_time_seconds=host.step_time_seconds if host else None,
            progress_changed=host.changed if host else None,
            metrics=leader.metrics,
            configs=self._configs[1] if self._configs else {},
            kinds=leader.kinds,
            sessions=_sessions(processes),
            started=leader.started,
            ended=leader.ended if host else peer.ended,
            first_received=self._first_received,
            last_received=max(
                (peer.received, *(each.host.received for each in processes)), default=self._first_received
            ),
            hosts=_hosts(processes),
            goodput=self._goodput,
        )

    def _state(self) -> bytes:
        document = {
            "v": STATE_VERSION,
            "namespace": self.key.namespace,
            "runId": self.key.run_id,
            "owner": self.owner,
            "firstReceived": self._first_received,
            "processes": {name: process.saved() for name, process in self._processes.items()},
            "peer": self._peer,
            "configs": {"order": self._configs[0], "value": self._configs[1]} if self._configs else None,
        }
        return orjson.dumps(document)


def _bounded(configs: dict[str, dict[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    """Return the configurations without the sections that exceed the limit."""
    for section in ("user", "hardware", "software"):
        if len(orjson.dumps(configs, option=orjson.OPT_NON_STR_KEYS)) > MAX_CONFIG_BYTES:
            configs[section] = {}
    return configs


def _hosts(processes: Iterable[ProcessMemory]) -> tuple[ReportedHost, ...]:
    """Return the newest process of each rank, and others that report the same rank."""
    kept: list[ReportedHost] = []
    newest: dict[int, list[ReportedHost]] = {}
    for process in processes:  # in order of attempts and arrival
        host = process.host
        if host.rank is None:
            kept = [each for each in kept if not _is_same_place(each, host)]
            kept.append(host)
            continue
        others = newest.get(host.rank, [])
        newest[host.rank] = [each for each in others if not _is_replaced(each, host)]
        newest[host.rank].append(host)
    for rank in sorted(newest):
        kept.extend(newest[rank])
    return tuple(kept)


def _is_same_place(older: ReportedHost, newer: ReportedHost) -> bool:
    """Return whether two processes without a rank ran in one container."""
    return (older.pod_uid, older.name) == (newer.pod_uid, newer.name) and _is_silent(older, newer)


def _is_replaced(older: ReportedHost, newer: ReportedHost) -> bool:
    same_pod = older.pod_uid == newer.pod_uid and older.name == newer.name
    return older.attempt < newer.attempt or same_pod or _is_silent(older, newer)


def _is_silent(older: ReportedHost, newer: ReportedHost) -> bool:
    return newer.received - older.received > SUPERSEDED_S or older.phase != "Active"


def _sessions(processes: Iterable[ProcessMemory]) -> tuple[ReportedSession, ...]:
    """Return the newest programmatic profiles, one of each id; the leader's facts win."""
    by_id: dict[str, ReportedSession] = {}
    for process in sorted(processes, key=lambda each: each.leader is not None):
        by_id |= {session.id: session for session in process.sessions}
    newest = sorted(by_id.values(), key=lambda session: (session.start or 0.0, session.id))
    return tuple(newest[-MAX_SESSIONS_OF_RUN:])
