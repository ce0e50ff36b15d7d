"""One rank of a run as a row of a table; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mldiagnostics.lifecycle.outcome import FINAL, Phase, RunOutcome
from mldiagnostics.runs.row import phase_at, phase_named
from mldiagnostics.runs.row_values import FieldReader, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.pipeline.records import Record

__all__ = ["RankRow", "rank_rows"]

_ON_DEMAND = "on-demand"
"""Name of the sessions that say on which port a process listens."""


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank of a run: its last process.

    Values that are not known: None or an empty text.
    """

    rank: int
    attempt: int
    incarnation: str
    """8 hex digits that no other process of the run has."""
    host: str
    """Name of the pod, or of the host where there is none."""
    phase: Phase
    """As of the moment of reading: a process that fell silent is Failed, for the reason `Lost`."""
    reason: str
    message: str
    heartbeat: float | None
    """Last sign of life, in Unix seconds."""
    step: int | None
    step_time_s: float | None = None
    """Mean time of a step between the last signs of life, in seconds."""
    pod: str | None = None
    pod_uid: str | None = None
    node: str | None = None
    slice: int | None = None
    """Number of the TPU slice."""
    host_index: int | None = None
    port: int | None = None
    """Port of the server for profiles on demand."""

    def to_json(self) -> dict[str, Any]:
        """Return the rank as JSON; times are RFC 3339, unknown values are null."""
        return {
            "rank": self.rank,
            "attempt": self.attempt,
            "incarnation": self.incarnation,
            "host": self.host or None,
            "pod": self.pod,
            "podUid": self.pod_uid,
            "node": self.node,
            "slice": self.slice,
            "hostIndex": self.host_index,
            "port": self.port,
            "phase": self.phase,
            "reason": self.reason or None,
            "message": self.message or None,
            "lastHeartbeatTime": timestamp(self.heartbeat),
            "progress": {"step": self.step, "stepTimeSeconds": self.step_time_s},
        }


def rank_rows(records: Iterable[tuple[str, Record]], *, now: float) -> list[RankRow]:
    """Return a row for each rank, of its last process, by rank.

    Args:
        records: Records with the incarnations of their processes; only phases, heartbeats and servers for profiles on
            demand count.
        now: As of when, in Unix seconds.
    """
    processes: dict[tuple[int, int, str], list[Record]] = {}
    ports: dict[tuple[int, int, str], int | None] = {}
    for incarnation, record in records:
        if record.kind in {"phase", "heartbeat"}:
            processes.setdefault((record.rank, record.attempt, incarnation), []).append(record)
        elif record.kind == "session" and record.name == _ON_DEMAND:
            ports[record.rank, record.attempt, incarnation] = FieldReader(record.payload).integer("port")
    last: dict[int, tuple[tuple[int, float], RankRow]] = {}
    for (rank, attempt, incarnation), history in processes.items():
        start = (attempt, min(record.t for record in history))
        if rank not in last or start > last[rank][0]:
            row = _rank_row(rank, attempt, incarnation, history, now)
            last[rank] = start, replace(row, port=ports.get((rank, attempt, incarnation)))
    return [row for _, (_, row) in sorted(last.items())]


def _rank_row(rank: int, attempt: int, incarnation: str, history: list[Record], now: float) -> RankRow:
    history = sorted(history, key=lambda each: each.t)
    outcome, interval_s, place = RunOutcome("Active"), None, FieldReader({})
    host = ""
    for record in history:
        payload = FieldReader(record.payload)
        host = payload.text("host") or host
        interval_s = payload.number("intervalSeconds") or interval_s
        if record.kind == "phase" and outcome.phase not in FINAL:
            outcome = RunOutcome(phase_named(record.name), payload.text("reason"), payload.text("message"))
        if record.kind == "phase" and not place.fields:
            place = payload  # the first phase says where the process runs
    outcome = phase_at(outcome, heartbeat=history[-1].t, interval_s=interval_s, now=now)
    progress = [(record.t, record.step) for record in history if record.step is not None]
    return RankRow(
        rank=rank,
        attempt=attempt,
        incarnation=incarnation,
        host=host,
        phase=outcome.phase,
        reason=outcome.reason,
        message=outcome.message,
        heartbeat=history[-1].t,
        step=max((step for _, step in progress), default=None),
        step_time_s=_step_time_s(progress),
        pod=host if host and place.text("podUid") else None,
        pod_uid=place.text("podUid") or None,
        node=place.text("node") or None,
        slice=place.integer("slice"),
        host_index=place.integer("hostIndex"),
    )


def _step_time_s(progress: Sequence[tuple[float, int]]) -> float | None:
    """Return the time of a step between the last two signs of life that show progress."""
    for (before, first), (after, last) in reversed(list(pairwise(progress))):
        if last > first and after > before:
            return (after - before) / (last - first)
    return None
