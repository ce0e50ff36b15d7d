"""The steps of the last second by their index; pure.

They show which steps a second writer reports again (R2).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mldiagnostics.goodput.ledger.rules import DUPLICATE_US

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.folded_columns import FoldedColumns


class RecentSteps:
    """Finds a step in constant time, however many a second has.

    Args:
        folded: The steps, in order of their starts; columns that only grow until `reset`.
    """

    def __init__(self, folded: FoldedColumns) -> None:
        self._folded = folded
        self._rows: dict[int, int] = {}
        self._oldest = self._next = 0
        """The steps from `_oldest` up to `_next` are in `_rows`."""

    def reset(self) -> None:
        """Read the steps anew, after they were cut back."""
        self._rows.clear()
        self._oldest = self._next = 0

    def last(self, index: int, t: int) -> int:
        """Return the row of the last step with this index; -1 without one.

        Steps in the second before `t` count, which is not before the start of any step, nor before an earlier `t`.
        """
        at, indexes, rows = self._folded.at, self._folded.index, self._rows
        first = bisect_left(at, t - DUPLICATE_US, self._oldest)
        for row in range(self._oldest, min(first, self._next)):
            if rows.get(indexes[row]) == row:
                del rows[indexes[row]]
        for row in range(max(first, self._next), len(at)):
            rows[indexes[row]] = row
        self._oldest, self._next = first, len(at)
        return rows.get(index, -1)
