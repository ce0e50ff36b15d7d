"""Stretches of time that somebody takes out of the account, as the queries are given them; pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import LOGGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.goodput.results import Unproductive

__all__ = ["GoodputExclusion", "get_exclusion_overlap", "merged", "normalize_intervals"]


class GoodputExclusion(ABC):
    """Whoever can leave stretches of time out of a job's account: the calculator."""

    @abstractmethod
    def get_job_goodput_with_exclusions(
        self,
        exclusion_intervals: Sequence[tuple[datetime, datetime]],
        include_badput_breakdown: bool = False,
        configured_ideal_step_time: float | None = None,
    ) -> tuple[float, Unproductive, int, float]:
        """Return goodput in per cent, the other time in per cent by bucket, the highest step and excluded seconds."""


def normalize_intervals(intervals: Iterable[tuple[datetime, datetime]]) -> list[tuple[float, float]]:
    """Return intervals as sorted POSIX seconds, those that overlap or touch made one.

    What is no stretch of time is left out with a warning: pairs without a time zone and pairs that end before they
    begin. Any time zone will do. Raises TypeError for what is no pair of datetimes.
    """
    return merged(_stretches(intervals))


def merged(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return stretches sorted, those that overlap or touch made one."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(stretches):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def get_exclusion_overlap(start: float, end: float, exclusions: Sequence[tuple[float, float]]) -> float:
    """Return how many seconds of [start, end) normalized exclusions cover."""
    return sum((max(0.0, min(end, until) - max(start, since)) for since, until in exclusions), 0.0)


def _stretches(intervals: Iterable[tuple[object, object]]) -> Iterable[tuple[float, float]]:
    for start, end in intervals:
        if not isinstance(start, datetime) or not isinstance(end, datetime):
            raise TypeError(f"exclusion {start!r} to {end!r} is no pair of datetimes: give two, with a time zone")
        if start.utcoffset() is None or end.utcoffset() is None:
            LOGGER.warning("exclusion %s to %s is left out: it has no time zone, give it one", start, end)
        elif start >= end:
            LOGGER.warning("exclusion %s to %s is left out: it does not end after it begins", start, end)
        else:
            yield start.timestamp(), end.timestamp()
