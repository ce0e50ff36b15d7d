"""Random histories of a run, written as processes of the SDK write them, as they are at a moment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from hypothesis import strategies as st
from mldiagnostics.layout import record_segment_key
from mldiagnostics.lifecycle.history import continued
from mldiagnostics.pipeline.records import Record, encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

End: TypeAlias = Literal["Completed", "Failed", "killed"]

RUN: Final = "4f6c" * 16
INTERVAL_S: Final = 100.0
LOST_S: Final = 3 * INTERVAL_S
"""A process that is silent for longer is lost."""
ATTEMPT_S: Final = 3000.0
"""From the start of an attempt to that of the next one, which may follow a suspension."""
LONG_S: Final = 1000.0
"""After this time all processes of an attempt have ended or are lost."""


@dataclass(frozen=True)
class Process:
    """The life of one process of an attempt, in seconds since the start of the attempt."""

    steps: int
    end: End
    late_s: float
    """It ends so much later than its steps."""
    loses_records: bool
    """Its records are not in the storage."""
    clock_step_s: float
    """Its clock is set by so much in the middle of its steps."""


class Moment(NamedTuple):
    """A moment at which a process writes, in seconds since the start of its attempt."""

    t: float
    step: int | None
    is_end: bool = False


@dataclass(frozen=True)
class History:
    """Attempts at a run, of each the processes by rank, and a moment at which others look at it."""

    attempts: tuple[tuple[Process, ...], ...]
    is_numbered: bool
    """Whether a launcher numbers the attempts."""
    looked_s: float
    """Seconds from the start of the last attempt to the moment."""

    @property
    def last(self) -> tuple[Process, ...]:
        return self.attempts[-1]

    def phase_of(self, process: Process) -> str:
        """Return the phase of a process of the last attempt at the moment."""
        seen = self.seen_of(process)
        if seen[-1].is_end:
            return process.end
        return "Failed" if self.looked_s - max(moment.t for moment in seen) > LOST_S else "Active"

    def seen_of(self, process: Process) -> list[Moment]:
        """Return the moments of a process of the last attempt that lie before this one."""
        return list(takewhile(lambda moment: moment.t <= self.looked_s, moments(process)))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw a history of one to three attempts of one to three ranks."""
    ranks, count = draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def process(rank: int) -> Process:
        return Process(
            steps=draw(st.integers(0, 12)),
            end=draw(st.sampled_from(["Completed", "Failed", "killed"])),
            late_s=draw(st.sampled_from([0.0, 51.0])),
            loses_records=draw(st.sampled_from([False, False, False, rank == 0])),
            clock_step_s=draw(st.sampled_from([0.0, 0.0, -30.0, 30.0])),
        )

    attempts = tuple(tuple(map(process, range(ranks))) for _ in range(count))
    looked_s = draw(st.sampled_from([LONG_S, LONG_S]) | st.floats(0.5, 110.0))  # the tests themselves may be slow
    return History(attempts, is_numbered=draw(st.booleans()), looked_s=looked_s)


def moments(process: Process) -> Iterator[Moment]:
    """Yield the moments at which a process writes: its start, its steps and its end."""
    t = 0.0
    yield Moment(t, None)
    for step in range(process.steps):
        t += 1.0 + (process.clock_step_s if step == process.steps // 2 and step else 0.0)
        yield Moment(t, step)
    if process.end != "killed":
        yield Moment(max(t, 0.0) + 1.0 + process.late_s, process.steps - 1 if process.steps else None, is_end=True)


def write(root: Path, history: History, *, now: float) -> None:
    """Write the files of a run as they are at its moment, which is `now`."""
    document: dict[str, Any] | None = None
    for number, processes in enumerate(history.attempts):
        recorded = number if history.is_numbered else 0
        start = now - history.looked_s - ATTEMPT_S * (len(history.attempts) - 1 - number)
        for rank, process in enumerate(processes):
            name = f"{number}{rank}aaaaaa"
            seen = history.seen_of(process) if processes is history.last else moments(process)
            common: dict[str, Any] = {"rank": rank, "attempt": recorded, "start": start, "incarnation": name}
            records = [each for moment in seen for each in _records(moment, process, **common)]
            if not process.loses_records:
                key = record_segment_key(attempt=recorded, rank=rank, incarnation=name, number=1)
                path = root / RUN / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(map(encode, records)))
            if rank == 0:
                document = continued(_manifest(records, len(processes), process, recorded, name), document)
    (root / RUN).mkdir(parents=True, exist_ok=True)
    (root / RUN / "run.json").write_text(json.dumps(document))


def _records(
    moment: Moment, process: Process, *, rank: int, attempt: int, start: float, incarnation: str
) -> Iterator[Record]:
    t, step = start + moment.t, moment.step

    def record(kind: Any, name: str, **payload: Any) -> Record:
        return Record(kind, t, name, step=step, rank=rank, attempt=attempt, payload=payload)

    def goodput(**payload: Any) -> Iterator[Record]:
        if rank == 0:
            event = {"job_name": "job", **payload, "event_id": f"{incarnation}-{step}-{moment.is_end:d}"}
            yield Record("event", t, "goodput", attempt=attempt, payload=event)

    if moment.is_end:
        if process.end == "Completed":
            yield from goodput(job_end_time=t)
        reason = {"reason": "ExitCode", "message": f"exit {rank + 3}"} if process.end == "Failed" else {}
        yield record("phase", process.end, host=f"host-{rank}", **({"reason": "", "message": ""} | reason))
    elif step is None:
        yield record("phase", "Active", host=f"host-{rank}", intervalSeconds=INTERVAL_S)
        yield from goodput(job_start_time=t)
    else:
        yield from goodput(step_count=step, step_start_time=t)
        yield record("heartbeat", "alive", intervalSeconds=INTERVAL_S, stepTimeSeconds=1.0)


def _manifest(records: list[Record], ranks: int, process: Process, attempt: int, incarnation: str) -> dict[str, Any]:
    """Return the run.json of the process that leads: the last write, of its end or of an earlier heartbeat."""
    final = records[-1] if records[-1].kind == "phase" and records[-1].name != "Active" else None
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
