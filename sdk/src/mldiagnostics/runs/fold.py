"""One row of a run out of its run.json and the rows of its processes; pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.runs.attempt_numbers import earlier_attempts
from mldiagnostics.runs.phase import phase_named
from mldiagnostics.runs.row_values import FieldReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mldiagnostics.runs.rank_row import RankRow
    from mldiagnostics.runs.row import RunRow


def is_final(row: RunRow) -> bool:
    """Return whether run.json has all facts: the only process has written its end."""
    return row.world_size == 1 and phase_named(row.document.get("phase")) in FINAL


def folded(row: RunRow, ranks: Sequence[RankRow]) -> tuple[RunRow, list[RankRow]]:
    """Return a run with the facts of all its processes, and its processes.

    A run has failed if one of its processes has, and runs while one of them does. It has ended with the last of them.
    The process that leads has the later one of its run.json and its records, which may be spooled.

    Args:
        row: The run by its run.json.
        ranks: Rows of its processes by their records.
    """
    incarnation = FieldReader(row.document).text("incarnation")
    leader = next((rank for rank in ranks if incarnation and rank.incarnation == incarnation), None)
    row = row if leader is None else _led(row, leader)
    last_attempt = _last_attempt(row)
    current, shown = [], []
    for rank in ranks:
        if rank is leader:
            shown.append(_leading(rank, row))
        elif not last_attempt(rank):
            shown.append(rank)
        else:
            current.append(replace(rank, attempt=rank.attempt if row.attempt is None else row.attempt))
            shown.append(current[-1])
    hosts = {rank.host for rank in (*current, *([leader] if leader else [])) if rank.host}
    return replace(_joined(row, current), hosts=len(hosts) or row.hosts), shown


def _led(row: RunRow, leader: RankRow) -> RunRow:
    """Return the run with the records of its leading process, if they are newer."""
    seen, last = row.heartbeat or 0.0, leader.heartbeat or 0.0
    if phase_named(row.document.get("phase")) in FINAL or last < seen:
        return replace(row, heartbeat=max(seen, last) or None)
    step = None if row.is_independent else leader.step
    step_time_s = None if row.is_independent else leader.step_time_s
    return replace(
        row,
        phase=leader.phase,
        reason=leader.reason,
        message=leader.message,
        heartbeat=last,
        ended=leader.ended,
        step=row.step if step is None else step,
        step_time_s=row.step_time_s if step_time_s is None else step_time_s,
    )


def _leading(leader: RankRow, row: RunRow) -> RankRow:
    """Return the row of the process that leads with the facts of its run."""
    return replace(
        leader,
        attempt=leader.attempt if row.attempt is None else row.attempt,
        phase=row.phase,
        reason=row.reason,
        message=row.message,
        heartbeat=row.heartbeat,
        ended=row.ended,
        step=row.step,
        step_time_s=row.step_time_s,
    )


def _last_attempt(row: RunRow) -> Callable[[RankRow], bool]:
    """Return the test whether a process belongs to the last attempt.

    Restarts without a launcher have one number.
    """
    recorded = FieldReader(row.document).integer("attempt")
    earlier = earlier_attempts(row.document)
    leaders = {each.text("incarnation") for each in earlier}
    ended = earlier[-1].number("ended") if earlier else None

    def has(rank: RankRow) -> bool:
        if rank.incarnation in leaders or (recorded is not None and rank.attempt != recorded):
            return False
        return ended is None or rank.started is None or rank.started >= ended

    return has


def _joined(row: RunRow, others: Sequence[RankRow]) -> RunRow:
    """Return the run with the outcome of the other processes of its last attempt."""
    is_running = row.phase not in FINAL or any(rank.phase not in FINAL for rank in others)
    row = replace(
        row,
        heartbeat=_latest([row.heartbeat, *(rank.heartbeat for rank in others)]),
        ended=None if is_running else _latest([row.ended, *(rank.ended for rank in others)]),
        step=row.step if row.step is not None else max((r.step for r in others if r.step is not None), default=None),
    )
    failed = sorted((rank for rank in others if rank.phase == "Failed"), key=_certainty)
    if row.phase == "Failed":
        return row
    if failed:
        first = failed[0]
        message = f"rank {first.rank} on {first.host or 'an unknown host'}: {first.message or first.reason}"
        if len(failed) > 1:
            message += f" (and {len(failed) - 1} more)"
        return replace(row, phase="Failed", reason=f"Worker{first.reason}", message=message)
    return replace(row, phase="Active", reason="", message="") if is_running and row.phase in FINAL else row


def _certainty(rank: RankRow) -> tuple[bool, float, int]:
    """Return the key that orders failures: recorded ones before silence, by time."""
    return rank.reason == "Lost", rank.ended or 0.0, rank.rank


def _latest(moments: Iterable[float | None]) -> float | None:
    return max((moment for moment in moments if moment is not None), default=None)
