"""How long steps take: durations of those that are done and not lost, and what is usual among them; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

from mldiagnostics.goodput.account import StepTimes
from mldiagnostics.goodput.ledger.sorting import in_order

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimeline, AttemptTimelines

_SECOND = 1_000_000
_FEW = 256
"""So many durations are put into their place one by one; more are sorted."""

_PIECE = 1 << 16
"""So many are worked out at once: as numbers of Python they take four times the memory."""


class StepDurations:
    """Durations by attempt, in microseconds, and the same in order of length; kept until something changes."""

    def __init__(self, progress: AttemptTimelines) -> None:
        self.progress = progress
        self._times = array("q")
        self._offsets: list[int] = []
        self._sorted: array[int] | None = None
        self._total = 0

    def forget(self, attempt: int, place: int) -> None:
        """Forget the steps from `place` on, which is in `attempt` or later."""
        offsets, courses = self._offsets, self.progress.courses
        if attempt >= len(offsets):
            return
        length = offsets[attempt]
        if attempt < len(courses):
            length += max(0, min(place, _stop(courses[attempt])) - courses[attempt].first)
        length = min(length, len(self._times), *offsets[attempt + 1 : attempt + 2])
        del offsets[attempt + 1 :]
        gone = self._times[length:]
        del self._times[length:]
        self._total -= sum(gone)
        if self._sorted is not None and len(gone) <= _FEW:
            for time in gone:
                del self._sorted[bisect_left(self._sorted, time)]
        elif gone:
            self._sorted = None

    def step_times(self) -> StepTimes:
        """Return the durations of all steps that are done, not lost, and followed by one of their attempt."""
        self._refresh()
        steps = array("i")
        for course in self.progress.courses:
            steps.extend(self.progress.fold.told.index[course.first : _stop(course)])
        return StepTimes(steps, self._times[:])

    def ideal(self) -> int | None:
        """Return the mean of the durations up to median + 3 MAD.

        Durations below a second are left out where they are fewer than half of all.
        """
        self._refresh()
        if self._sorted is None:
            self._sorted = in_order(self._times)
        times = self._sorted
        if not times:
            return None
        low = bisect_left(times, _SECOND)
        low = low if 2 * low < len(times) else 0
        size = len(times) - low
        twice = times[low + (size - 1) // 2] + times[low + size // 2]
        spread = _deviation(times, low, twice, (size - 1) // 2) + _deviation(times, low, twice, size // 2)
        high = bisect_right(times, (2 * twice + 3 * spread) // 4, low)
        return (self._total - sum(times[:low]) - sum(times[high:])) // (high - low)

    def _refresh(self) -> None:
        """Add what is not here yet."""
        courses, offsets, times = self.progress.courses, self._offsets, self._times
        known = len(times)
        for attempt in range(max(0, len(offsets) - 1), len(courses)):
            if attempt == len(offsets):
                offsets.append(len(times))
            course = courses[attempt]
            stop = _stop(course)
            for first in range(course.first + len(times) - offsets[attempt], stop, _PIECE):
                fresh = self.progress.net_times(first, min(first + _PIECE, stop))
                times.extend(fresh)
                self._total += sum(fresh)
        if self._sorted is not None and len(times) - known <= _FEW:
            for time in times[known:]:
                insort(self._sorted, time)
        elif len(times) > known:
            self._sorted = None


def _stop(course: AttemptTimeline) -> int:
    """Return the place after the last step that counts."""
    return min(course.kept, course.last)


def _deviation(times: array[int], low: int, twice: int, place: int) -> int:
    """Return which of all |2x - twice| is at `place` when they are sorted; `times` is sorted and begins at `low`."""
    least, most = 0, max(2 * times[-1] - twice, twice - 2 * times[low])
    while least < most:
        middle = (least + most) // 2
        within = bisect_right(times, (twice + middle) // 2, low) - bisect_left(times, (twice - middle + 1) // 2, low)
        least, most = (least, middle) if within > place else (middle + 1, most)
    return least
