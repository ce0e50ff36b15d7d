"""Many numbers in order, which change anywhere; pure.

They are kept in blocks, so that an insertion moves a few kilobytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from itertools import accumulate
from typing import TYPE_CHECKING

from mldiagnostics.goodput.ledger.sorting import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BLOCK = 1024
"""Numbers in a new block; one that has twice as many is divided."""


class SortedNumbers:
    """Whole numbers in ascending order, with their indexes and sums."""

    def __init__(self, numbers: array[int]) -> None:
        ordered = in_order(numbers)
        self._blocks = [ordered[first : first + _BLOCK] for first in range(0, len(ordered), _BLOCK)]
        self._sums = [sum(block) for block in self._blocks]
        self._lasts = [block[-1] for block in self._blocks]
        self._ends: list[int] | None = None

    def __len__(self) -> int:
        return self._block_ends()[-1] if self._blocks else 0

    def __getitem__(self, index: int) -> int:
        ends = self._block_ends()
        at = bisect_right(ends, index)
        return self._blocks[at][index - (ends[at - 1] if at else 0)]

    def add(self, number: int) -> None:
        """Insert a number."""
        if not self._blocks:
            self._blocks, self._sums, self._lasts = [array("q")], [0], [number]
        at = min(bisect_left(self._lasts, number), len(self._blocks) - 1)
        block = self._blocks[at]
        insort(block, number)
        self._sums[at] += number
        self._lasts[at] = block[-1]
        self._ends = None
        if len(block) >= 2 * _BLOCK:
            parts = [block[:_BLOCK], block[_BLOCK:]]
            self._blocks[at : at + 1] = parts
            self._sums[at : at + 1] = map(sum, parts)
            self._lasts[at : at + 1] = [part[-1] for part in parts]

    def remove(self, number: int) -> None:
        """Remove a number, which is one of them."""
        at = bisect_left(self._lasts, number)
        block = self._blocks[at]
        del block[bisect_left(block, number)]
        self._ends = None
        if block:
            self._sums[at] -= number
            self._lasts[at] = block[-1]
        else:
            del self._blocks[at], self._sums[at], self._lasts[at]

    def below(self, number: int) -> int:
        """Return how many are below a number."""
        return self._count(bisect_left, number)

    def up_to(self, number: int) -> int:
        """Return how many are not above a number."""
        return self._count(bisect_right, number)

    def sum_of_first(self, count: int) -> int:
        """Return the sum of the smallest ones."""
        ends = self._block_ends()
        at = bisect_right(ends, count)
        whole = sum(self._sums[:at])
        return whole if at == len(ends) else whole + sum(self._blocks[at][: count - (ends[at - 1] if at else 0)])

    def _count(self, bisect: Callable[[Sequence[int], int], int], number: int) -> int:
        at = bisect(self._lasts, number)
        if at == len(self._blocks):
            return len(self)
        return (self._block_ends()[at - 1] if at else 0) + bisect(self._blocks[at], number)

    def _block_ends(self) -> list[int]:
        """Return the index after the last number of each block."""
        if self._ends is None:
            self._ends = list(accumulate(map(len, self._blocks)))
        return self._ends
