"""The distribution of step times: exact quantiles, and bins for a drawing; pure."""

from __future__ import annotations

from collections import Counter
from math import floor, fsum, log2
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


BINS_PER_DOUBLING: Final = 16
"""Bins are 4.4 % wide: steps from 1 ms to 1 h have 350 at most."""

_QUANTILES: Final = {"p1": 0.01, "median": 0.5, "p90": 0.9, "p99": 0.99}


def step_histogram(durations_s: Sequence[float]) -> dict[str, Any]:
    """Return the distribution of durations in seconds as JSON.

    Args:
        durations_s: In any order; those of 0 count as the shortest ones.

    Returns:
        `count`; `mean`, `min`, `max` and quantiles (the smallest duration that at least this share does not exceed),
        null without durations; and `bins`, pairs of a number n and a count, for durations from 2^(n/16) up to
        2^((n+1)/16) seconds.
    """
    ordered = sorted(durations_s)
    size = len(ordered)
    if not size:
        return {"count": 0, "mean": None, "min": None, "max": None, **dict.fromkeys(_QUANTILES), "bins": []}
    shortest = next((each for each in ordered if each > 0), 1.0)
    bins = Counter(floor(log2(max(each, shortest)) * BINS_PER_DOUBLING) for each in ordered)
    return {
        "count": size,
        "mean": fsum(ordered) / size,
        "min": ordered[0],
        "max": ordered[-1],
        **{name: ordered[max(0, -int(-share * size // 1) - 1)] for name, share in _QUANTILES.items()},
        "bins": sorted(bins.items()),
    }
