"""Arguments of the calculator, validated and converted; pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.timestamps import END_OF_TIME_S

if TYPE_CHECKING:
    from collections.abc import Callable


_LONGEST_RETENTION_S = 50 * 365 * 86_400.0


def posix_now(clock: Callable[[], object]) -> float:
    """Return the POSIX seconds of a clock. Raises TypeError for other values."""
    now = clock()
    if isinstance(now, (float, int)) and 0 <= now < END_OF_TIME_S:
        return now
    raise TypeError(f"clock() returned {now!r}: it must return POSIX seconds")


def window(start: object, end: object) -> tuple[float, float]:
    """Return a window as POSIX seconds; bounds without a time zone are UTC.

    Raises ValueError if a bound is missing or the window is empty, TypeError if a bound is not a datetime.
    """
    if start is None or end is None:
        raise ValueError(f"window from {start} to {end}: a bound is missing; pass interval_start and interval_end")
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        raise TypeError(f"window from {start!r} to {end!r}: not datetimes; pass two datetimes")
    bounds = [bound if bound.tzinfo else bound.replace(tzinfo=timezone.utc) for bound in (start, end)]
    if bounds[0] >= bounds[1]:
        raise ValueError(f"window from {start} to {end}: does not end after its start; pass a later interval_end")
    return bounds[0].timestamp(), bounds[1].timestamp()


def retention(period: timedelta | float | None) -> timedelta | None:
    """Return how far back logs are read; None is the whole log.

    `period` is a timedelta or seconds. Raises TypeError if it is not a length of time, `ConfigurationError` if it is
    not above 0.
    """
    if period is None:
        return None
    if isinstance(period, bool) or not isinstance(period, (int, float, timedelta)):
        raise TypeError(f"max_logs_retention_period={period!r}: not a length of time; pass seconds or a timedelta")
    seconds = period.total_seconds() if isinstance(period, timedelta) else period
    if not seconds > 0:  # nor NaN
        raise ConfigurationError(f"max_logs_retention_period={period!r}: not above 0; pass seconds or a timedelta")
    return timedelta(seconds=seconds) if seconds < _LONGEST_RETENTION_S else None
