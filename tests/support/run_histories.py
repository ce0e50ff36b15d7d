"""Random histories of a run, written as processes of the SDK write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from hypothesis import strategies as st
from mldiagnostics.layout import record_segment_key
from mldiagnostics.lifecycle.history import continued
from mldiagnostics.pipeline.records import Record, encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

End: TypeAlias = Literal["Completed", "Failed", "killed", "running"]

RUN: Final = "4f6c" * 16
INTERVAL_S: Final = 100.0
LONG_AGO_S: Final = 20_000.0
"""Age of the first attempt; killed processes fell silent longer ago than three intervals."""


@dataclass(frozen=True)
class Process:
    """The life of one process of an attempt."""

    steps: int
    end: End
    late_s: float
    """It ends so much later than its steps."""
    loses_records: bool
    """Its records are not in the storage."""
    clock_step_s: float
    """Its clock is set by so much in the middle of its steps."""


@dataclass(frozen=True)
class History:
    """Attempts at a run: of each the processes by rank."""

    attempts: tuple[tuple[Process, ...], ...]
    is_numbered: bool
    """Whether a launcher numbers the attempts."""

    @property
    def last(self) -> tuple[Process, ...]:
        return self.attempts[-1]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a history of one to three attempts of one to three ranks."""
    ranks, count = draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def process(*, rank: int, is_last: bool) -> Process:
        ends: list[End] = ["Completed", "Failed", "killed"]
        if is_last:
            ends.append("running")
        return Process(
            steps=draw(st.integers(0, 12)),
            end=draw(st.sampled_from(ends)),
            late_s=draw(st.sampled_from([0.0, 51.0])),
            loses_records=draw(st.sampled_from([False, False, False, rank == 0])),
            clock_step_s=draw(st.sampled_from([0.0, 0.0, -30.0, 30.0])),
        )

    attempts = tuple(
        tuple(process(rank=rank, is_last=number == count - 1) for rank in range(ranks)) for number in range(count)
    )
    return History(attempts, is_numbered=draw(st.booleans()))


def write(root: Path, history: History, *, now: float) -> None:
    """Write the files of a run as they are at `now`."""
    document: dict[str, Any] | None = None
    for number, processes in enumerate(history.attempts):
        recorded = number if history.is_numbered else 0
        start = now - LONG_AGO_S + 3000.0 * number
        for rank, process in enumerate(processes):
            own_start = now - 60.0 if process.end == "running" else start
            name = f"{number}{rank}aaaaaa"
            records = list(_records(process, rank, recorded, own_start, name))
            if not process.loses_records:
                key = record_segment_key(attempt=recorded, rank=rank, incarnation=name, number=1)
                path = root / RUN / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(map(encode, records)))
            if rank == 0:
                document = continued(_manifest(process, records, len(processes), recorded, name), document)
    (root / RUN).mkdir(parents=True, exist_ok=True)
    (root / RUN / "run.json").write_text(json.dumps(document))


def _records(process: Process, rank: int, attempt: int, start: float, incarnation: str) -> Iterator[Record]:
    host = f"host-{rank}"

    def record(kind: Any, t: float, name: str, step: int | None = None, **payload: Any) -> Record:
        return Record(kind, t, name, step=step, rank=rank, attempt=attempt, payload=payload)

    def goodput(t: float, number: int, **payload: Any) -> Record:
        event = {"job_name": "job", **payload, "event_id": f"{incarnation}-{number}"}
        return record("event", t, "goodput", **event)

    yield record("phase", start, "Active", host=host, intervalSeconds=INTERVAL_S)
    t, last = start, None
    if rank == 0:
        yield goodput(t, 0, job_start_time=t)
    for last in range(process.steps):
        t += 1.0 + (process.clock_step_s if last == process.steps // 2 and last else 0.0)
        if rank == 0:
            yield goodput(t, last + 1, step_count=last, step_start_time=t)
        yield record("heartbeat", t, "alive", last, intervalSeconds=INTERVAL_S, stepTimeSeconds=1.0)
    if process.end in {"Completed", "Failed"}:
        t = max(t, start) + 1.0 + process.late_s
        if rank == 0:
            yield goodput(t, process.steps + 1, job_end_time=t)
        reason = {"reason": "ExitCode", "message": f"exit {rank + 3}"} if process.end == "Failed" else {}
        yield record("phase", t, process.end, last, host=host, **({"reason": "", "message": ""} | reason))


def _manifest(process: Process, records: list[Record], ranks: int, attempt: int, incarnation: str) -> dict[str, Any]:
    """Return the run.json of the process that leads: the last write, of its end or of an earlier heartbeat."""
    final = records[-1] if process.end in {"Completed", "Failed"} else None
    beats = [record for record in records if record.kind in {"phase", "heartbeat"}]
    seen = beats[-1] if final else beats[len(beats) // 2]
    payload = (final.payload if final else None) or {}
    return {
        "v": 1,
        "runId": RUN,
        "name": "job",
        "phase": final.name if final else "Active",
        "reason": payload.get("reason", ""),
        "message": payload.get("message", ""),
        "created": records[0].t,
        "started": records[0].t,
        "ended": final.t if final else None,
        "heartbeat": {"t": seen.t, "intervalSeconds": INTERVAL_S},
        "attempt": attempt,
        "incarnation": incarnation,
        "worldSize": ranks,
        "host": "host-0",
        "progress": {} if seen.step is None else {"step": seen.step, "t": seen.t, "stepTimeSeconds": 1.0},
        "drops": {"buffer-full": 3} if process.loses_records else {},
    }
