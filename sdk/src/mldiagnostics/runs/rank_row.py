"""One rank of a run as a row of a table; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mldiagnostics.lifecycle.outcome import FINAL, Phase, RunOutcome
from mldiagnostics.pipeline.records import ON_DEMAND, is_goodput
from mldiagnostics.runs.phase import phase_at, phase_named
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.pipeline.records import Record


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
    """The step that started last."""
    step_time_s: float | None = None
    """Median time of the recent steps, in seconds."""
    started: float | None = None
    """First sign of life, in Unix seconds."""
    ended: float | None = None
    """When it ended, or was seen last before it fell silent; None while it runs."""
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
            "startTime": timestamp(self.started),
            "completionTime": timestamp(self.ended),
            "lastHeartbeatTime": timestamp(self.heartbeat),
            "progress": {"step": self.step, "stepTimeSeconds": self.step_time_s},
        }


def rank_rows(records: Iterable[tuple[str, Record]], *, now: float, interval_s: float | None = None) -> list[RankRow]:
    """Return a row for each rank, of its last process, by rank.

    Args:
        records: Records with the incarnations of their processes. Any record is a sign of life.
        now: As of when, in Unix seconds.
        interval_s: Time between the heartbeats of the run, for processes that were killed before they recorded theirs.
    """
    processes: dict[tuple[int, int, str], list[Record]] = {}
    ports: dict[tuple[int, int, str], int | None] = {}
    for incarnation, record in records:
        processes.setdefault((record.rank, record.attempt, incarnation), []).append(record)
        if record.kind == "session" and record.name == ON_DEMAND:
            ports[record.rank, record.attempt, incarnation] = FieldReader(record.payload).integer("port")
    last: dict[int, tuple[tuple[int, float], RankRow]] = {}
    for (rank, attempt, incarnation), history in processes.items():
        start = (attempt, _start_of(history))
        if rank not in last or start > last[rank][0]:
            row = _rank_row(rank, attempt, incarnation, history, now=now, interval_s=interval_s)
            last[rank] = start, replace(row, port=ports.get((rank, attempt, incarnation)))
    return [row for _, (_, row) in sorted(last.items())]


def _rank_row(
    rank: int, attempt: int, incarnation: str, history: list[Record], *, now: float, interval_s: float | None
) -> RankRow:
    history = sorted(history, key=lambda each: each.t)
    recorded, process = RunOutcome("Active"), FieldReader({})
    host, step, step_time_s = "", None, None
    for record in history:
        if (started_step := _step_of(record)) is not None:
            step = started_step
        if record.kind not in {"phase", "heartbeat"}:
            continue
        payload = FieldReader(record.payload)
        host = payload.text("host") or host
        interval_s = payload.number("intervalSeconds") or interval_s
        step_time_s = payload.number("stepTimeSeconds") or step_time_s
        if record.kind == "phase" and recorded.phase not in FINAL:
            recorded = RunOutcome(phase_named(record.name), payload.text("reason"), payload.text("message"))
        if record.kind == "phase" and not process.fields:
            process = payload  # the first phase says where the process runs
    seen = history[-1].t
    outcome = phase_at(recorded, heartbeat=seen, interval_s=interval_s, now=now)
    return RankRow(
        rank=rank,
        attempt=attempt,
        incarnation=incarnation,
        host=host,
        phase=outcome.phase,
        reason=outcome.reason,
        message=outcome.message,
        heartbeat=seen,
        step=step,
        step_time_s=step_time_s,
        started=_start_of(history),
        ended=seen if outcome.phase in FINAL else None,
        pod=host if host and process.text("podUid") else None,
        pod_uid=process.text("podUid") or None,
        node=process.text("node") or None,
        slice=process.integer("slice"),
        host_index=process.integer("hostIndex"),
    )


def _start_of(history: list[Record]) -> float:
    """Return the first sign of life of a process, in Unix seconds.

    Inputs of goodput have the time that they describe: a daemon repeats the start of its parent's job.
    """
    return min([record.t for record in history if not is_goodput(record)] or [record.t for record in history])


def _step_of(record: Record) -> int | None:
    """Return the step that has started; metrics may have steps of their own."""
    if is_goodput(record):
        payload = FieldReader(record.payload)
        return payload.integer("step_count") if payload.number("step_start_time") is not None else None
    return record.step if record.kind in {"phase", "heartbeat"} else None
