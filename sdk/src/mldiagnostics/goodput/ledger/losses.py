"""Attempts and disruptions of a run, with their costs; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.goodput.account import Attempt, Disruption
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import EventCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.goodput.account import Account
    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimelines
    from mldiagnostics.goodput.ledger.columns import EventColumns
    from mldiagnostics.goodput.ledger.fold import Fold
    from mldiagnostics.goodput.ledger.phases import AttemptTimeline
    from mldiagnostics.goodput.ledger.span_overlay import SpanOverlay

_INIT = tuple(
    bucket.value
    for bucket in (BadputType.TPU_INITIALIZATION, BadputType.TRAINING_PREP, BadputType.ELASTIC_REINITIALIZATION)
)
_RESTORE = (BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME.value,)
_STARTUP = (BadputType.PROGRAM_STARTUP.value,)
_WAITS = {int(EventCode.SLICE_DOWN_START): "slice_down", int(EventCode.SCALE_UP_START): "scale_up"}


class FoldedRun(Protocol):
    """The parts of a run's timeline from which its losses follow."""

    log: EventColumns
    fold: Fold
    progress: AttemptTimelines
    span_overlay: SpanOverlay

    def sums(self, start: int, end: int) -> Account:
        """Return the sums of a window."""


def disruptions_of(run: FoldedRun) -> list[Disruption]:
    """Return the disruptions of a run, oldest first."""
    begin = run.progress.begin
    return [disruption for disruption in _all_disruptions(run) if disruption.restarted > begin]


def attempts_of(run: FoldedRun) -> list[Attempt]:
    """Return the attempts of a run, oldest first; the last one may have no step yet."""
    progress, index = run.progress, run.fold.folded.index
    intervals: list[tuple[int, int, int | None, int | None]] = [
        (timeline.begin, timeline.until, index[timeline.first], index[timeline.last]) for timeline in progress.timelines
    ]
    if progress.restart is not None or not intervals:
        begin = progress.begin if progress.restart is None else progress.restart
        intervals.append((begin, progress.until, None, None))
    ended_by = [*_all_disruptions(run), None]
    outside = sum(end <= progress.begin for _, end, _, _ in intervals[:-1])
    attempts = []
    for number in range(outside, len(intervals)):
        begin, end, first, last = intervals[number]
        start = max(begin, progress.begin)
        attempts.append(Attempt(number - outside, start, end, first, last, run.sums(start, end), ended_by[number]))
    return attempts


def _all_disruptions(run: FoldedRun) -> Iterator[Disruption]:
    folded, progress = run.fold.folded, run.progress
    lost = _repeated_steps(progress)
    for attempt, timeline in enumerate(progress.timelines):
        if attempt:
            yield _disruption(run, progress.timelines[attempt - 1], folded.back[attempt], timeline, lost[attempt])
    if progress.restart is not None:
        yield _disruption(run, progress.timelines[-1], run.fold.state.back, None, (0, 0))


def _disruption(
    run: FoldedRun,
    previous: AttemptTimeline,
    restart_seen: int,
    following: AttemptTimeline | None,
    lost: tuple[int, int],
) -> Disruption:
    """Return the disruption between two attempts.

    `restart_seen` is the first restart event; `lost` are number and time of the repeated steps.
    """
    span_overlay, log, at = run.span_overlay, run.log, run.fold.folded.at
    starts, _ = log.job_edges()
    last_end, until = max(previous.last_end, run.progress.begin), following.start if following else run.progress.until
    seen = min(max(last_end, log.t[bisect_left(log.t, restart_seen) - 1]), previous.until)
    slow = 0
    if following:
        done = at[following.first + 1] if following.first < following.last else following.last_end
        slow = span_overlay.uncovered(following.start, following.startup)
        slow += span_overlay.covered(following.start, done, _STARTUP)
    return Disruption(
        lost=last_end,
        seen=seen,
        restarted=previous.until,
        resumed=following.start if following else None,
        starts=bisect_right(starts, previous.until) - bisect_right(starts, at[previous.last]),
        cause=_cause(run, previous, until),
        steps_lost=lost[0],
        wasted=lost[1],
        detect=seen - last_end,
        reschedule=previous.until - seen,
        init=span_overlay.covered(previous.until, until, _INIT),
        restore=span_overlay.covered(previous.until, until, _RESTORE),
        first_step=span_overlay.covered(previous.until, until, _STARTUP) + slow,
        recovered=until - last_end + slow,
    )


def _cause(run: FoldedRun, previous: AttemptTimeline, until: int) -> str:
    """Return the recorded cause, else the elastic wait that started, else `unknown`."""
    folded = run.fold.folded
    first, last = bisect_left(folded.mark_t, previous.start), bisect_right(folded.mark_t, max(until, previous.until))
    marks = [(folded.mark_t[row], folded.mark_code[row], folded.mark_arg[row]) for row in range(first, last)]
    causes = [str(run.log.table[arg]) for t, code, arg in marks if code == EventCode.CAUSE and t <= previous.until]
    waits = [_WAITS[code] for t, code, _ in marks if code in _WAITS and previous.last_end <= t <= until]
    return (causes or waits or ["unknown"])[-1]


def _repeated_steps(progress: AttemptTimelines) -> list[tuple[int, int]]:
    """Return for each attempt the number and time of the done steps it repeats (R3)."""
    folded, begin, repeated = progress.fold.folded, progress.begin, []
    remaining: list[tuple[AttemptTimeline, int]] = []
    for timeline in progress.timelines:
        first, steps, wasted = folded.index[timeline.first], 0, 0
        while remaining:
            previous, stop = remaining.pop()
            kept = bisect_left(folded.index, first, previous.first, stop)
            if kept < stop:
                end = folded.at[stop] if stop <= previous.last else previous.last_end
                steps += stop - kept - (stop > previous.last and not previous.ended)
                wasted += progress.span_overlay.uncovered(max(folded.at[kept], begin), max(end, begin))
            if kept > previous.first:
                remaining.append((previous, kept))
                break
        remaining.append((timeline, timeline.last + 1))
        repeated.append((steps, wasted))
    return repeated
