"""Intervals that queries exclude; pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import LOGGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.goodput.queries.results import UnproductiveTimeDict

__all__ = ["GoodputExclusion", "get_exclusion_overlap", "merged", "normalize_intervals"]


class GoodputExclusion(ABC):
    """Interface of calculators that can exclude intervals from a job's time."""

    @abstractmethod
    def get_job_goodput_with_exclusions(
        self,
        exclusion_intervals: Sequence[tuple[datetime, datetime]],
        include_badput_breakdown: bool = False,
        configured_ideal_step_time: float | None = None,
    ) -> tuple[float, UnproductiveTimeDict, int, float]:
        """Return goodput, breakdown, highest completed step and excluded seconds."""


def normalize_intervals(intervals: Iterable[tuple[datetime, datetime]]) -> list[tuple[float, float]]:
    """Return intervals as sorted, merged POSIX seconds.

    Pairs without a time zone and pairs that do not end after their start are ignored, with a warning. Raises TypeError
    for anything but pairs of datetimes.
    """
    return merged(_valid_intervals(intervals))


def merged(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return intervals sorted, with overlapping and touching ones merged."""
    merged_intervals: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if merged_intervals and start <= merged_intervals[-1][1]:
            merged_intervals[-1] = (merged_intervals[-1][0], max(merged_intervals[-1][1], end))
        else:
            merged_intervals.append((start, end))
    return merged_intervals


def get_exclusion_overlap(start: float, end: float, exclusions: Sequence[tuple[float, float]]) -> float:
    """Return the seconds of [start, end) that normalized exclusions cover."""
    return sum((max(0.0, min(end, until) - max(start, since)) for since, until in exclusions), 0.0)


def _valid_intervals(intervals: Iterable[tuple[object, object]]) -> Iterable[tuple[float, float]]:
    for start, end in intervals:
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            raise TypeError(f"exclusion {start!r} to {end!r}: not datetimes; pass two, with a time zone")
        if start.utcoffset() is None or end.utcoffset() is None:
            LOGGER.warning("exclusion %s to %s ignored: no time zone; pass datetimes with a time zone", start, end)
        elif start >= end:
            LOGGER.warning("exclusion %s to %s ignored: it does not end after its start; pass a later end", start, end)
        else:
            yield start.timestamp(), end.timestamp()
