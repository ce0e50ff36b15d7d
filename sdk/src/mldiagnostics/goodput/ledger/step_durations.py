"""Durations of the steps that are done and survive, and the ideal step time; pure."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from mldiagnostics.goodput.account import StepTimes
from mldiagnostics.goodput.ledger.sorted_numbers import SortedNumbers

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimelines
    from mldiagnostics.goodput.ledger.phases import AttemptTimeline

_SECOND = 1_000_000
_SORTED_SHARE = 8
"""If more than an eighth of the durations change, all of them are sorted anew."""

_PIECE = 1 << 16
"""Durations that are computed at once: as Python objects they take four times the memory."""


class StepDurations:
    """Step durations (microseconds) by attempt, and sorted; cached until they change."""

    def __init__(self, progress: AttemptTimelines) -> None:
        self.progress = progress
        self._steps, self._times = array("i"), array("q")
        self._offsets: list[int] = []
        self._sorted: SortedNumbers | None = None

    def forget(self, attempt: int, row: int) -> None:
        """Drop the durations of the steps from `row` on, which is in `attempt` or later."""
        offsets, timelines = self._offsets, self.progress.timelines
        if attempt >= len(offsets):
            return
        length = offsets[attempt]
        if attempt < len(timelines):
            length += max(0, min(row, _end_row(timelines[attempt])) - timelines[attempt].first)
        length = min(length, len(self._times), *offsets[attempt + 1 : attempt + 2])
        del offsets[attempt + 1 :]
        removed = self._times[length:]
        del self._times[length:], self._steps[length:]
        if self._sorted is not None and _SORTED_SHARE * len(removed) <= len(self._times):
            for time in removed:
                self._sorted.remove(time)
        elif removed:
            self._sorted = None

    def step_times(self) -> StepTimes:
        """Return the durations of surviving steps that a step of the same attempt follows.

        They change with later events: copy what is kept, and do not change them.
        """
        self._refresh()
        return StepTimes(self._steps, self._times)

    def ideal(self) -> int | None:
        """Return the mean of the durations up to median + 3 MAD; None without durations.

        Durations below a second are left out if they are fewer than half (docs/decisions/0009 "Short steps").
        """
        self._refresh()
        if self._sorted is None:
            self._sorted = SortedNumbers(self._times)
        times, size = self._sorted, len(self._times)
        if not size:
            return None
        low = times.below(_SECOND)
        low = low if 2 * low < size else 0
        kept = size - low
        twice = times[low + (kept - 1) // 2] + times[low + kept // 2]
        spread = _deviation(times, low, twice, (kept - 1) // 2) + _deviation(times, low, twice, kept // 2)
        high = times.up_to((2 * twice + 3 * spread) // 4)
        return (times.sum_of_first(high) - times.sum_of_first(low)) // (high - low)

    def _refresh(self) -> None:
        """Add the durations of new steps."""
        timelines, offsets, times = self.progress.timelines, self._offsets, self._times
        old_length = len(times)
        for attempt in range(max(0, len(offsets) - 1), len(timelines)):
            if attempt == len(offsets):
                offsets.append(len(times))
            timeline = timelines[attempt]
            stop = _end_row(timeline)
            for first in range(timeline.first + len(times) - offsets[attempt], stop, _PIECE):
                added = self.progress.net_times(first, min(first + _PIECE, stop))
                times.extend(added)
                self._steps.extend(self.progress.fold.folded.index[first : first + len(added)])
        if self._sorted is not None and _SORTED_SHARE * (len(times) - old_length) <= len(times):
            for time in times[old_length:]:
                self._sorted.add(time)
        elif len(times) > old_length:
            self._sorted = None


def _end_row(timeline: AttemptTimeline) -> int:
    """Return the row after the last step that has a duration."""
    return min(timeline.kept, timeline.last)


def _deviation(times: SortedNumbers, low: int, twice: int, index: int) -> int:
    """Return number `index` of the sorted |2x - twice| for x in `times` from `low` on."""
    least, most = 0, max(2 * times[len(times) - 1] - twice, twice - 2 * times[low])
    while least < most:
        middle = (least + most) // 2
        within = times.up_to((twice + middle) // 2) - max(low, times.below((twice - middle + 1) // 2))
        least, most = (least, middle) if within > index else (middle + 1, most)
    return least
