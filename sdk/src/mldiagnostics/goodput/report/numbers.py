"""Statistics of sorted values; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of sorted values, interpolated linearly at (n - 1) p / 100.

    Raises:
        ValueError: there are no values.
    """
    if not ordered:
        raise ValueError("ordered: empty; a percentile needs at least one value")
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
