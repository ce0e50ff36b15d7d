"""What each attempt did, and what each disruption cost; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from mldiagnostics.goodput.account import Attempt, Disruption
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events import EventCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimeline, AttemptTimelines
    from mldiagnostics.goodput.ledger.run_timeline import RunTimeline

_INIT = tuple(
    bucket.value
    for bucket in (BadputType.TPU_INITIALIZATION, BadputType.TRAINING_PREP, BadputType.ELASTIC_REINITIALIZATION)
)
_RESTORE = (BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME.value,)
_STARTUP = (BadputType.PROGRAM_STARTUP.value,)
_WAITS = {int(EventCode.SLICE_DOWN_START): "slice_down", int(EventCode.SCALE_UP_START): "scale_up"}


def disruptions_of(life: RunTimeline) -> list[Disruption]:
    """Return the disruptions within the job's life, oldest first."""
    begin = life.progress.begin
    return [loss for loss in _all(life) if loss.restarted > begin]


def attempts_of(life: RunTimeline) -> list[Attempt]:
    """Return the attempts within the job's life, oldest first; the last one may have no step yet."""
    progress, index = life.progress, life.fold.told.index
    stretches: list[tuple[int, int, int | None, int | None]] = [
        (course.begin, course.until, index[course.first], index[course.last]) for course in progress.courses
    ]
    if progress.restart is not None or not stretches:
        begin = progress.begin if progress.restart is None else progress.restart
        stretches.append((begin, progress.until, None, None))
    ended_by = [*_all(life), None]
    outside = sum(end <= progress.begin for _, end, _, _ in stretches[:-1])
    found = []
    for place in range(outside, len(stretches)):
        begin, end, first, last = stretches[place]
        start = max(begin, progress.begin)
        found.append(Attempt(place - outside, start, end, first, last, life.sums(start, end), ended_by[place]))
    return found


def _all(life: RunTimeline) -> Iterator[Disruption]:
    told, progress = life.fold.told, life.progress
    lost = _lost(progress)
    for attempt, course in enumerate(progress.courses):
        if attempt:
            yield _loss(life, progress.courses[attempt - 1], told.back[attempt], course, lost[attempt])
    if progress.restart is not None:
        yield _loss(life, progress.courses[-1], life.fold.state.back, None, (0, 0))


def _loss(
    life: RunTimeline, old: AttemptTimeline, back: int, new: AttemptTimeline | None, lost: tuple[int, int]
) -> Disruption:
    painting, log, at = life.painting, life.log, life.fold.told.at
    starts, _ = log.job_edges()
    over, until = max(old.over, life.progress.begin), new.start if new else life.progress.until
    seen = min(max(over, log.t[bisect_left(log.t, back) - 1]), old.until)
    slow = 0
    if new:
        done = at[new.first + 1] if new.first < new.last else new.over
        slow = painting.free(new.start, new.startup) + painting.covered(new.start, done, _STARTUP)
    return Disruption(
        lost=over,
        seen=seen,
        restarted=old.until,
        resumed=new.start if new else None,
        starts=bisect_right(starts, old.until) - bisect_right(starts, at[old.last]),
        cause=_cause(life, old, until),
        steps_lost=lost[0],
        wasted=lost[1],
        detect=seen - over,
        reschedule=old.until - seen,
        init=painting.covered(old.until, until, _INIT),
        restore=painting.covered(old.until, until, _RESTORE),
        first_step=painting.covered(old.until, until, _STARTUP) + slow,
        recovered=until - over + slow,
    )


def _cause(life: RunTimeline, old: AttemptTimeline, until: int) -> str:
    """Return the cause that was told before the restart, else which wait began (S12)."""
    told = life.fold.told
    first, last = bisect_left(told.mark_t, old.start), bisect_right(told.mark_t, max(until, old.until))
    marks = [(told.mark_t[place], told.mark_code[place], told.mark_arg[place]) for place in range(first, last)]
    causes = [str(life.log.table[arg]) for t, code, arg in marks if code == EventCode.CAUSE and t <= old.until]
    waits = [_WAITS[code] for t, code, _ in marks if code in _WAITS and old.over <= t <= until]
    return (causes or waits or ["unknown"])[-1]


def _lost(progress: AttemptTimelines) -> list[tuple[int, int]]:
    """Return for each attempt how many steps that were done it does again, and how long they had taken."""
    told, begin, found = progress.fold.told, progress.begin, []
    alive: list[tuple[AttemptTimeline, int]] = []
    for course in progress.courses:
        first, steps, wasted = told.index[course.first], 0, 0
        while alive:
            old, stop = alive.pop()
            kept = bisect_left(told.index, first, old.first, stop)
            if kept < stop:
                end = told.at[stop] if stop <= old.last else old.over
                steps += stop - kept - (stop > old.last and not old.ended)
                wasted += progress.painting.free(max(told.at[kept], begin), max(end, begin))
            if kept > old.first:
                alive.append((old, kept))
                break
        alive.append((course, course.last + 1))
        found.append((steps, wasted))
    return found
