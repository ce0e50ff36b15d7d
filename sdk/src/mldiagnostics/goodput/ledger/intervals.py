"""Disjoint intervals in order, and the time that they cover; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

_BLOCK = 16


class Intervals:
    """Columns `start` and `end` (microseconds), sorted and disjoint."""

    __slots__ = ("_cached_row", "_cached_sum", "end", "start", "sums")

    def __init__(self) -> None:
        self.start = array("q")
        self.end = array("q")
        self.sums = array("q", [0])
        """Covered time before each block, extended on demand."""
        self._cached_row = -1
        self._cached_sum = 0

    def __len__(self) -> int:
        return len(self.start)

    def append(self, start: int, end: int) -> None:
        """Add an interval that starts at or after the end of the last one."""
        self.start.append(start)
        self.end.append(end)

    def cut(self, length: int) -> None:
        """Keep only the first `length` intervals."""
        del self.start[length:], self.end[length:]
        self._cached_row = -1
        del self.sums[length // _BLOCK + 1 :]

    def clip(self, t: int) -> None:
        """Remove the time after `t`."""
        length = bisect_left(self.start, t)
        self.cut(length)
        if length and self.end[-1] > t:
            self.end[-1] = t
            del self.sums[(length - 1) // _BLOCK + 1 :]

    def before(self, t: int) -> int:
        """Return the covered time before `t`."""
        last = bisect_right(self.start, t) - 1
        if last < 0:
            return 0
        if last != self._cached_row:
            self._cached_row, self._cached_sum = last, self._before_start(last)
        return self._cached_sum + min(t, self.end[last]) - self.start[last]

    def _before_start(self, last: int) -> int:
        """Return the covered time before the start of interval `last`."""
        block = last // _BLOCK
        if len(self.sums) <= block:
            self._extend_sums(block)
        first = block * _BLOCK
        if first == last:
            return self.sums[block]
        return self.sums[block] + sum(self.end[first:last]) - sum(self.start[first:last])

    def _extend_sums(self, block: int) -> None:
        starts, ends, sums = self.start, self.end, self.sums
        for first in range((len(sums) - 1) * _BLOCK, block * _BLOCK, _BLOCK):
            sums.append(sums[-1] + sum(ends[first : first + _BLOCK]) - sum(starts[first : first + _BLOCK]))

    def after(self, t: int, amount: int, limit: int) -> int:
        """Return the moment at which `amount` of uncovered time has passed since `t`.

        If there is less than `amount` by `limit`, return the end of the last uncovered time.
        """
        row = max(0, bisect_right(self.start, t) - 1)
        reached = t
        while amount > 0 and t < limit:
            known = row < len(self.start)
            free = min(self.start[row] if known else limit, limit) - t
            if free > 0:
                reached = t + min(free, amount)
                amount -= free
            t = max(t, self.end[row]) if known else limit
            row += 1
        return reached
