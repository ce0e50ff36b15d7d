"""One run as a row of a table, and its phase as a reader sees it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from mldiagnostics.lifecycle.outcome import FINAL, TERMINATING, Phase, RunOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.pipeline.records import Record

HEARTBEATS_MISSED = 3
"""After how many intervals of silence a process counts as lost."""

_PHASES = frozenset({"Pending", "Active", "Completed", "Failed"})


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. Times are Unix seconds, None where unknown; `step_time_s` is the mean between two signs of life.

    `phase` and `reason` are as of the moment of reading: a run that fell silent is Failed, `Lost`. `configs` has the
    sections software, hardware and user; `document` is the whole run.json.
    """

    run_id: str
    name: str
    run_group: str
    phase: Phase
    reason: str
    message: str
    created: float | None
    started: float | None
    ended: float | None
    heartbeat: float | None
    attempt: int
    world_size: int
    host: str
    namespace: str
    step: int | None
    step_time_s: float | None
    configs: Mapping[str, Any]
    directory: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RankRow:
    """One process of a run, in its last attempt and incarnation."""

    rank: int
    attempt: int
    incarnation: str
    host: str
    phase: Phase
    reason: str
    message: str
    heartbeat: float | None
    step: int | None


def phase_at(verdict: RunOutcome, *, heartbeat: float | None, interval_s: float | None, now: float) -> RunOutcome:
    """Return the phase as of `now`: Failed, `Lost`, if what should be active was silent for three intervals."""
    if verdict.phase != "Active" or heartbeat is None or not interval_s:
        return verdict
    silent_s = now - heartbeat
    if silent_s <= HEARTBEATS_MISSED * interval_s:
        return verdict
    silence = f"no sign of life for {silent_s:.0f} s, one is due every {interval_s:g} s"
    if verdict.reason == TERMINATING:
        return RunOutcome(
            "Failed", "Terminated", f"{verdict.message}; {silence} since then: killed before it had ended"
        )
    return RunOutcome("Failed", "Lost", f"{silence}: killed, or the host is gone")


def run_row(document: Mapping[str, Any], *, directory: str, now: float) -> RunRow:
    """Return the row of a run.json; what is missing or of another type in it is left empty."""
    read = _FieldReader(document)
    heartbeat, progress = read.part("heartbeat"), read.part("progress")
    beaten = heartbeat.number("t")
    said = RunOutcome(_phase(document.get("phase")), read.text("reason"), read.text("message"))
    seen = phase_at(said, heartbeat=beaten, interval_s=heartbeat.number("intervalSeconds"), now=now)
    return RunRow(
        run_id=read.text("runId"),
        name=read.text("name"),
        run_group=read.text("runGroup"),
        phase=seen.phase,
        reason=seen.reason,
        message=seen.message,
        created=read.number("created"),
        started=read.number("started"),
        ended=read.number("ended") if said.phase == seen.phase else beaten,
        heartbeat=beaten,
        attempt=int(read.number("attempt") or 0),
        world_size=int(read.number("worldSize") or 1),
        host=read.text("host"),
        namespace=read.text("namespace"),
        step=None if (step := progress.number("step")) is None else int(step),
        step_time_s=progress.number("stepTimeSeconds"),
        configs=read.part("configs").found,
        directory=directory,
        document=document,
    )


def rank_rows(records: Iterable[tuple[str, Record]], *, now: float) -> list[RankRow]:
    """Return a row for each rank out of records with their incarnations, of its last process."""
    processes: dict[tuple[int, int, str], list[Record]] = {}
    for incarnation, record in records:
        if record.kind in {"phase", "heartbeat"}:
            processes.setdefault((record.rank, record.attempt, incarnation), []).append(record)
    last: dict[int, tuple[tuple[int, float], RankRow]] = {}
    for (rank, attempt, incarnation), seen in processes.items():
        when = (attempt, min(record.t for record in seen))
        if rank not in last or when > last[rank][0]:
            last[rank] = when, _rank_row(rank, attempt, incarnation, seen, now)
    return [row for _, (_, row) in sorted(last.items())]


def folded(row: RunRow, ranks: Sequence[RankRow]) -> RunRow:
    """Return the row with the failures of single processes in it: a run is not well whose worker is not."""
    failed = [rank for rank in ranks if rank.phase == "Failed" and rank.attempt == row.attempt]
    if row.phase == "Failed" or not failed:
        return row
    first = failed[0]
    message = f"rank {first.rank} on {first.host or 'an unknown host'}: {first.message or first.reason}"
    if len(failed) > 1:
        message += f" (and {len(failed) - 1} more)"
    return replace(row, phase="Failed", reason=f"Worker{first.reason}", message=message)


def _rank_row(rank: int, attempt: int, incarnation: str, seen: list[Record], now: float) -> RankRow:
    said, host, interval_s = RunOutcome("Active"), "", None
    for record in sorted(seen, key=lambda each: each.t):
        payload = _FieldReader(record.payload or {})
        host = payload.text("host") or host
        interval_s = payload.number("intervalSeconds") or interval_s
        if record.kind == "phase" and said.phase not in FINAL:
            said = RunOutcome(_phase(record.name), payload.text("reason"), payload.text("message"))
    beaten = max(record.t for record in seen)
    verdict = phase_at(said, heartbeat=beaten, interval_s=interval_s, now=now)
    steps = [record.step for record in seen if record.step is not None]
    step = max(steps) if steps else None
    return RankRow(rank, attempt, incarnation, host, verdict.phase, verdict.reason, verdict.message, beaten, step)


class _FieldReader:
    """Values by key and type out of JSON that may hold anything."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.found = found

    def text(self, key: str) -> str:
        value = self.found.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        value = self.found.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def part(self, key: str) -> _FieldReader:
        value = self.found.get(key)
        return _FieldReader(value if isinstance(value, Mapping) else {})


def _phase(text: object) -> Phase:
    return cast("Phase", text) if isinstance(text, str) and text in _PHASES else "Pending"
