"""The time of a step: the median of the recent steps by the monotonic clock."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


RECENT_S = 20.0
"""Steps that started so many seconds before the newest one count, so that a change shows in time."""
FEWEST, MOST = 5, 128
"""Of slow steps the newest ones count, of fast ones no more."""


class StepStarts:
    """Starts of the recent steps; `note` may be called while another thread reads."""

    def __init__(self) -> None:
        self._starts: deque[tuple[float, int]] = deque(maxlen=MOST + 1)
        self.note = self._starts.append
        """Takes the time by a monotonic clock, in seconds, and the number of a step that starts."""

    def median_s(self) -> float | None:
        """Return the median time of a step in seconds, None before two steps have started."""
        starts = [*self._starts.copy()]
        since = starts[-1][0] - RECENT_S if starts else 0.0
        recent = [start for start in starts if start[0] >= since]
        return median_step_s(recent if len(recent) > FEWEST else starts[-FEWEST - 1 :])


def median_step_s(starts: Iterable[tuple[float, int]]) -> float | None:
    """Return the median time of a step by the starts of steps.

    Skipped numbers share the time of their gap. A number that does not increase, as after a restore, ends no step.
    """
    spent = sorted(
        (after - before) / (last - first) for (before, first), (after, last) in pairwise(starts) if last > first
    )
    middle = len(spent) // 2
    if not spent:
        return None
    return spent[middle] if len(spent) % 2 else (spent[middle - 1] + spent[middle]) / 2
