"""Durations of the steps that are done and survive, and the ideal step time; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

from mldiagnostics.goodput.account import StepTimes
from mldiagnostics.goodput.ledger.sorting import in_order

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimelines
    from mldiagnostics.goodput.ledger.phases import AttemptTimeline

_SECOND = 1_000_000
_INSERT_LIMIT = 256
"""Up to this many new durations are inserted into the sorted column; more are sorted."""

_PIECE = 1 << 16
"""Durations that are computed at once: as Python objects they take four times the memory."""


class StepDurations:
    """Step durations (microseconds) by attempt, and sorted; cached until they change."""

    def __init__(self, progress: AttemptTimelines) -> None:
        self.progress = progress
        self._times = array("q")
        self._offsets: list[int] = []
        self._sorted: array[int] | None = None
        self._total = 0

    def forget(self, attempt: int, place: int) -> None:
        """Drop the durations of the steps from `place` on, which is in `attempt` or later."""
        offsets, timelines = self._offsets, self.progress.timelines
        if attempt >= len(offsets):
            return
        length = offsets[attempt]
        if attempt < len(timelines):
            length += max(0, min(place, _end_place(timelines[attempt])) - timelines[attempt].first)
        length = min(length, len(self._times), *offsets[attempt + 1 : attempt + 2])
        del offsets[attempt + 1 :]
        removed = self._times[length:]
        del self._times[length:]
        self._total -= sum(removed)
        if self._sorted is not None and len(removed) <= _INSERT_LIMIT:
            for time in removed:
                del self._sorted[bisect_left(self._sorted, time)]
        elif removed:
            self._sorted = None

    def step_times(self) -> StepTimes:
        """Return the durations of surviving steps that a step of the same attempt follows."""
        self._refresh()
        steps = array("i")
        for timeline in self.progress.timelines:
            steps.extend(self.progress.fold.folded.index[timeline.first : _end_place(timeline)])
        return StepTimes(steps, self._times[:])

    def ideal(self) -> int | None:
        """Return the mean of the durations up to median + 3 MAD; None without durations.

        Durations below a second are left out if they are fewer than half (docs/decisions/0009 "Short steps").
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
        """Add the durations of new steps."""
        timelines, offsets, times = self.progress.timelines, self._offsets, self._times
        old_length = len(times)
        for attempt in range(max(0, len(offsets) - 1), len(timelines)):
            if attempt == len(offsets):
                offsets.append(len(times))
            timeline = timelines[attempt]
            stop = _end_place(timeline)
            for first in range(timeline.first + len(times) - offsets[attempt], stop, _PIECE):
                added = self.progress.net_times(first, min(first + _PIECE, stop))
                times.extend(added)
                self._total += sum(added)
        if self._sorted is not None and len(times) - old_length <= _INSERT_LIMIT:
            for time in times[old_length:]:
                insort(self._sorted, time)
        elif len(times) > old_length:
            self._sorted = None


def _end_place(timeline: AttemptTimeline) -> int:
    """Return the place after the last step that has a duration."""
    return min(timeline.kept, timeline.last)


def _deviation(times: array[int], low: int, twice: int, place: int) -> int:
    """Return number `place` of the sorted |2x - twice| for x in `times[low:]`, sorted."""
    least, most = 0, max(2 * times[-1] - twice, twice - 2 * times[low])
    while least < most:
        middle = (least + most) // 2
        within = bisect_right(times, (twice + middle) // 2, low) - bisect_left(times, (twice - middle + 1) // 2, low)
        least, most = (least, middle) if within > place else (middle + 1, most)
    return least
