"""Memory of one process of a run; pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Self

from mldiagnostics_api.reports.models import INTERVAL_S
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedSession

from mldiagnostics_operator.control_plane.limits import PROCESS_BYTES, SESSIONS_OF_OTHER_RANKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.reports.models import Phase, Report

    from mldiagnostics_operator.control_plane.identity.sender import Sender
    from mldiagnostics_operator.control_plane.memory.saved_state import SavedProcess


@dataclass(frozen=True, slots=True)
class LeaderFacts:
    """Facts that only the process that leads reports."""

    name: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    notes: str = ""
    storage: str = ""
    started: float | None = None
    ended: float | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes in memory without the metrics, about."""
        tags = sum(_TAG_BYTES + len(tag) for tag in self.tags)
        return tags + _text_bytes(self.name, self.group, self.notes, self.storage)


@dataclass(frozen=True, slots=True)
class PeerFacts:
    """Facts that the peer's client reports."""

    aliases: tuple[str, ...] = ()
    name: str = ""
    storage: str = ""
    phase: Phase = "Active"
    ended: float | None = None
    received: float = 0.0


_TAG_BYTES = 64
"""Memory of a tag, without its text."""
_ENTRY_BYTES = 128
"""Memory of a metric or a profile, without its texts."""

_NOBODY = ReportedHost(
    rank=None, slice=None, name="", pod="", pod_uid="", node="", attempt=0, incarnation="", received=0
)


class ProcessMemory:
    """The newest report of one process, by its sequence."""

    __slots__ = (
        "first_received",
        "host",
        "is_lean",
        "leader",
        "persisted_sequence",
        "sequence",
        "sessions",
        "turned",
        "whole",
        "world_size",
    )

    def __init__(self, first_received: float) -> None:
        self.first_received = first_received
        self.sequence = 0
        self.whole = 0
        """The newest sequence whose report was kept with all its parts: only such a one is acknowledged."""
        self.persisted_sequence = 0
        self.is_lean = False
        """Whether the newest report was kept without its profiles and metrics."""
        self.turned = False
        """Whether the newest report is the first one, has the first step, or another phase or attempt."""
        self.world_size: int | None = None
        self.host = _NOBODY
        self.leader: LeaderFacts | None = None
        self.sessions: tuple[ReportedSession, ...] = ()

    @property
    def order(self) -> tuple[int, float, str]:
        """Place among the processes of the run; the newest is the last."""
        return self.host.attempt, self.first_received, self.host.incarnation

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        leader = self.leader.size if self.leader else 0
        metrics = sum(_ENTRY_BYTES + len(name) for name in self.leader.metrics) if self.leader else 0
        sessions = sum(_ENTRY_BYTES + _text_bytes(each.id, each.directory, each.state) for each in self.sessions)
        host = self.host
        texts = _text_bytes(host.name, host.node, host.server, host.server_version, host.reason, host.message)
        return PROCESS_BYTES + texts + leader + metrics + sessions

    def is_reporting(self, now: float) -> bool:
        """Return whether another report is expected."""
        return self.host.phase == "Active" and now - self.host.received <= self.host.silent_s

    def apply(
        self, report: Report, sender: Sender, received: float, *, room: int, interval_s: int = INTERVAL_S
    ) -> bool:
        """Apply a report; return False for one that is not newer than the newest.

        Args:
            report: The report.
            sender: Its sender.
            received: When it arrived, in Unix seconds.
            room: Bytes by which the process may grow; without them, profiles and metrics are not kept.
            interval_s: When the next report is requested.
        """
        if report.sequence <= self.sequence:
            if received > self.host.received:  # the process lives
                self.host = replace(self.host, received=received, interval_s=interval_s, unserved_s=0)
            return False
        before, last = self.size, self.host
        self.sequence = report.sequence
        self.world_size = report.world_size
        self.host = _host(report, sender, received, interval_s)
        self.turned = last is _NOBODY or _stage(last) != _stage(self.host)
        self._apply_leader(report, dict(report.metrics))
        sessions = [
            ReportedSession(each.id, each.directory, each.start, each.stop, each.state) for each in report.sessions
        ]
        self.sessions = tuple(sessions if self.leader else sessions[-SESSIONS_OF_OTHER_RANKS:])
        self.is_lean = self.size - before > room
        if self.is_lean:
            self.sessions = ()
            self._apply_leader(report, {})
        return True

    def _apply_leader(self, report: Report, metrics: Mapping[str, float | None]) -> None:
        if (run := report.run) is not None:
            self.leader = LeaderFacts(
                run.name,
                run.group,
                run.tags,
                run.notes,
                run.storage,
                started=run.started,
                ended=run.ended,
                metrics=metrics,
            )

    def saved(self) -> dict[str, Any]:
        """Return the process as orjson writes it, for `restored`."""
        return {
            "sequence": self.sequence,
            "whole": self.whole,
            "firstReceived": self.first_received,
            "worldSize": self.world_size,
            "host": self.host,
            "leader": self.leader,
            "sessions": self.sessions,
        }

    @classmethod
    def restored(cls, saved: SavedProcess, listening_since: float) -> Self:
        """Return the process that `saved` returned.

        Args:
            saved: The process.
            listening_since: `ReportTable.listening_since`: its silence counts from then at the earliest.
        """
        process = cls(saved.first_received)
        process.sequence = saved.sequence
        process.whole = process.persisted_sequence = saved.sequence if saved.whole is None else saved.whole
        process.world_size = saved.world_size
        host = ReportedHost(**dict(saved.host))
        process.host = replace(host, unserved_s=max(0, ceil(listening_since - host.received)))
        process.leader = LeaderFacts(**dict(saved.leader)) if saved.leader else None
        process.sessions = tuple(ReportedSession(**dict(session)) for session in saved.sessions)
        return process

    def join(self, restored: Self) -> None:
        """Add what the journal has; a newer report wins."""
        self.first_received = min(self.first_received, restored.first_received)
        self.persisted_sequence = max(self.persisted_sequence, restored.persisted_sequence)
        if restored.sequence > self.sequence:
            self.sequence, self.world_size, self.host = restored.sequence, restored.world_size, restored.host
            self.whole = max(self.whole, restored.whole)
            self.leader, self.sessions = restored.leader, restored.sessions


def _text_bytes(*texts: str) -> int:
    return sum(map(len, texts))


def _stage(host: ReportedHost) -> tuple[str, int, bool]:
    return host.phase, host.attempt, host.step is None


def _host(report: Report, sender: Sender, received: float, interval_s: int) -> ReportedHost:
    """Return the host of a report; pod and node are those of the token."""
    host, profiler, progress = report.host, report.profiler, report.progress
    return ReportedHost(
        rank=report.rank,
        slice=host.slice,
        name=host.name,
        pod=sender.pod,
        pod_uid=sender.pod_uid,
        node=sender.node or ("" if sender.pod_uid else host.node),
        attempt=report.attempt,
        incarnation=report.incarnation,
        ports=tuple(profiler.ports) if profiler else (),
        server=profiler.server if profiler else "",
        server_version=profiler.version if profiler else "",
        tensorflow=profiler.tensorflow if profiler else None,
        phase=report.phase,
        reason=report.reason,
        message=report.message,
        step=progress.step if progress else None,
        step_time_seconds=progress.step_time_seconds if progress else None,
        changed=progress.changed if progress else None,
        clock_ahead=round(report.sent - received, 3),
        received=received,
        interval_s=interval_s,
    )
