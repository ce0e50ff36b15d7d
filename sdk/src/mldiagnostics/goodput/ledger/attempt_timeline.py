"""Attempts as stretches of time: on the way to the first step, startup, productive, wasted, recovery; pure.

Under the spans an attempt is cut at five moments: its begin, its first step, the end of that step's startup, the first
step that is lost, the end of the last step. What lies between two of them is one bucket, so that any sum is a
difference of times less what spans cover.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.state import NEVER

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.fold import Fold
    from mldiagnostics.goodput.ledger.span_overlay import SpanOverlay

OTHER, STARTUP, PRODUCTIVE, WASTED, RECOVERY = range(5)
SPENT: tuple[Bucket | None, ...] = (
    Bucket(BadputType.OTHER),
    Bucket(BadputType.PROGRAM_STARTUP),
    None,
    Bucket(BadputType.WASTED_PROGRESS_FROM_DISRUPTION),
    Bucket(BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION),
)
"""What the stretches of an attempt are, in their order."""

_UNBOUND = 2**31


class AttemptTimeline(NamedTuple):
    """How an attempt went: moments in microseconds, and places of steps."""

    begin: int
    start: int
    startup: int
    lost: int
    over: int
    until: int
    """When the next attempt begins, or the job's life ends."""
    first: int
    kept: int
    """Place after the last step that is not lost."""
    done: int
    """Place after the last step that is done and not lost."""
    last: int
    ended: bool
    """Whether the last step was done."""
    fruitful: int
    """The nearest attempt, this one or before, that has a step that is done and not lost; -1 if none has."""


class AttemptTimelines:
    """The courses of all attempts that have steps, kept until something about them changes."""

    def __init__(self, fold: Fold, painting: SpanOverlay) -> None:
        self.fold = fold
        self.painting = painting
        self.courses: list[AttemptTimeline] = []
        self.begin = 0
        self.until = 0
        self._bounds: list[int] = []
        """The lowest index with which a later attempt begins, for each attempt of which something is left by then."""
        self._alive: list[int] = []
        """The attempts of which something is left, each beginning at a higher index than the one before."""
        self._totals: list[tuple[int, ...]] = []

    def refresh(self, begin: int, until: int, since: int) -> int:
        """Take in what has come; return how many attempts are as they were.

        The job lives from `begin` to `until`, spans have changed from `since` on.
        """
        told = self.fold.told
        self.begin, self.until = begin, until
        valid = min(told.stable - 1, len(self.courses) - 1, bisect_right(told.begin, since) - 1, len(told.first) - 1)
        if told.stable < len(self._bounds):
            self._bounds, self._alive = [], []
        told.stable = FAR
        valid = max(0, min(valid, self._bind()))
        del self.courses[valid:], self._totals[valid + 1 :]
        for attempt in range(valid, len(told.first)):
            if attempt == len(self._totals):
                self._totals.append(self._total(attempt))
            self.courses.append(self._course(attempt))
        return valid

    @property
    def restart(self) -> int | None:
        """When an attempt began that has no step yet."""
        pending = self.fold.state.pending
        return None if pending == NEVER else pending

    def sums(self, t: int) -> list[int]:
        """Return how much of the time before `t` was what, without what spans cover."""
        attempt = bisect_right(self.fold.told.begin, t) - 1
        if attempt < 0:
            return [0 if self.courses else self.painting.free(self.begin, max(t, self.begin)), 0, 0, 0, 0]
        found = list(self._totals[attempt])
        course = self.courses[attempt]
        if t > course.begin:
            self._add(found, course, t, attempt)
        return found

    def last_done(self, t: int) -> int | None:
        """Return the highest index of a step that is done by `t` and not lost."""
        told = self.fold.told
        attempt = bisect_right(told.begin, t) - 1
        while attempt >= 0 and (attempt := self.courses[attempt].fruitful) >= 0:
            course = self.courses[attempt]
            begun = bisect_right(told.at, t, course.first, course.last + 1) - 1
            done = min(course.done, begun + (begun == course.last and course.over <= t))
            if done > course.first and (told.at[done] if done <= course.last else course.over) >= self.begin:
                return told.index[done - 1]
            attempt -= 1
        return None

    def net_times(self, first: int, last: int) -> list[int]:
        """Return how long the steps from place `first` to before `last` took, without spans."""
        at = self.fold.told.at
        times = list(map(sub, at[first + 1 : last + 1], at[first:last]))
        if first < last:
            for start, end, _ in self.painting.between(at[first], at[last]):
                place = bisect_right(at, start, first, last) - 1
                while place < last and at[place] < end:
                    times[place - first] -= min(end, at[place + 1]) - max(start, at[place])
                    place += 1
        return times

    def _bind(self) -> int:
        """Note for each attempt which steps later ones do again; return how many attempts that did not change.

        An attempt takes the rest of those that begin at its first step or above, and cuts the one before these.
        """
        told, bounds, alive = self.fold.told, self._bounds, self._alive
        same = FAR
        for attempt in range(len(bounds), len(told.first)):
            first = told.index[told.first[attempt]]
            while alive and bounds[alive[-1]] > first:
                same = min(same, alive[-1])
                bounds[alive[-1]] = first
                if told.index[told.first[alive[-1]]] < first:
                    break
                alive.pop()
            same = min(same, attempt)
            bounds.append(_UNBOUND)
            alive.append(attempt)
        return same

    def _total(self, attempt: int) -> tuple[int, ...]:
        if not attempt:
            return (0, 0, 0, 0, 0)
        found = list(self._totals[attempt - 1])
        course = self.courses[attempt - 1]
        self._add(found, course, course.until, attempt - 1)
        return tuple(found)

    def _add(self, sums: list[int], course: AttemptTimeline, t: int, attempt: int) -> None:
        """Add what was between an attempt's begin and `t`."""
        before = self.painting.cover.before
        left, covered = course.begin, before(course.begin)
        running = attempt == len(self.fold.told.first) - 1 and self.restart is None
        tail = OTHER if running else RECOVERY
        for kind, right in enumerate(course[1:6]):
            moment = min(right, t)
            if moment > left:
                hidden = before(moment)
                sums[tail if kind == RECOVERY else kind] += moment - left - hidden + covered
                left, covered = moment, hidden
        if t > left:
            sums[OTHER] += self.painting.free(left, t)

    def _course(self, attempt: int) -> AttemptTimeline:
        told = self.fold.told
        first = told.first[attempt]
        closed = attempt + 1 < len(told.first)
        last = (told.first[attempt + 1] if closed else len(told.at)) - 1
        kept = bisect_left(told.index, self._bounds[attempt], first, last + 1) if closed else last + 1
        over, until, finished = self._closed_ending(attempt, first, last) if closed else self._open_ending(last)
        done = min(kept, last + finished)
        return AttemptTimeline(
            begin=told.begin[attempt],
            start=told.at[first],
            startup=self._startup(first, min(kept, last)),
            lost=told.at[kept] if kept <= last else over,
            over=over,
            until=until,
            first=first,
            kept=kept,
            done=done,
            last=last,
            ended=finished,
            fruitful=attempt if done > first else self.courses[attempt - 1].fruitful if attempt else -1,
        )

    def _startup(self, first: int, last: int) -> int:
        """Return when the first step has taken what it took longer than the mean of the others before `last` (S6)."""
        at, cover = self.fold.told.at, self.painting.cover
        others = last - first - 1
        start, second, stop = at[first], at[min(first + 1, last)], at[last]
        if others < 1:
            return start
        hidden = cover.before(second)
        mean = (stop - second - cover.before(stop) + hidden) // others
        extra = second - start - hidden + cover.before(start) - mean
        return cover.after(start, extra, second) if extra > 0 else start

    def _closed_ending(self, attempt: int, first: int, last: int) -> tuple[int, int, bool]:
        """Return when the last step was over, when the next attempt begins, and whether that step was done (S4)."""
        told = self.fold.told
        restart, ended = told.begin[attempt + 1], told.ended[attempt + 1]
        if ended != NEVER:
            return ended, restart, True
        stride = told.index[last] - told.index[last - 1] if last > first else 1
        if 0 < told.index[told.first[attempt + 1]] - told.index[last] <= stride:
            typical = median(sorted(self.net_times(first, last)) or [0])
            return self.painting.cover.after(told.at[last], typical, restart), restart, True
        return told.at[last], restart, False

    def _open_ending(self, last: int) -> tuple[int, int, bool]:
        state = self.fold.state
        until = self.until if self.restart is None else self.restart
        ended = state.known_end()
        if ended != NEVER:
            return min(ended, until), until, True
        return self.fold.told.at[last], until, False


def median(ordered: list[int]) -> int:
    """Return the middle of sorted numbers, between the two in the middle rounded down."""
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
