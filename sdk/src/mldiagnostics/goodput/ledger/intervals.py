"""Disjoint stretches of time in order, and how much of the time before any moment they cover; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

_BLOCK = 16


class Intervals:
    """Columns `start` and `end` (microseconds), sorted, not overlapping. Sums of blocks are kept, the rest is added."""

    __slots__ = ("_asked", "_found", "end", "start", "sums")

    def __init__(self) -> None:
        self.start = array("q")
        self.end = array("q")
        self.sums = array("q", [0])
        """What is covered before each block, as far as somebody asked."""
        self._asked = -1
        self._found = 0

    def __len__(self) -> int:
        return len(self.start)

    def append(self, start: int, end: int) -> None:
        """Add a stretch that begins where the last one ends, or later."""
        self.start.append(start)
        self.end.append(end)

    def cut(self, length: int) -> None:
        """Forget all but the first `length` stretches."""
        del self.start[length:], self.end[length:]
        self._asked = -1
        del self.sums[length // _BLOCK + 1 :]

    def clip(self, t: int) -> None:
        """Forget what lies after `t`."""
        length = bisect_left(self.start, t)
        self.cut(length)
        if length and self.end[-1] > t:
            self.end[-1] = t
            del self.sums[(length - 1) // _BLOCK + 1 :]

    def before(self, t: int) -> int:
        """Return how much time before `t` is covered."""
        last = bisect_right(self.start, t) - 1
        if last < 0:
            return 0
        if last != self._asked:
            self._asked, self._found = last, self._before_start(last)
        return self._found + min(t, self.end[last]) - self.start[last]

    def _before_start(self, last: int) -> int:
        """Return how much those before the last one cover."""
        block = last // _BLOCK
        if len(self.sums) <= block:
            self._add_up(block)
        first = block * _BLOCK
        if first == last:
            return self.sums[block]
        return self.sums[block] + sum(self.end[first:last]) - sum(self.start[first:last])

    def _add_up(self, block: int) -> None:
        starts, ends, sums = self.start, self.end, self.sums
        for first in range((len(sums) - 1) * _BLOCK, block * _BLOCK, _BLOCK):
            sums.append(sums[-1] + sum(ends[first : first + _BLOCK]) - sum(starts[first : first + _BLOCK]))

    def after(self, t: int, amount: int, limit: int) -> int:
        """Return when `amount` of time that is not covered has gone by since `t`, or what of it there is by `limit`."""
        place = max(0, bisect_right(self.start, t) - 1)
        reached = t
        while amount > 0 and t < limit:
            known = place < len(self.start)
            free = min(self.start[place] if known else limit, limit) - t
            if free > 0:
                reached = t + min(free, amount)
                amount -= free
            t = max(t, self.end[place]) if known else limit
            place += 1
        return reached
