"""What people give to the calculator, made what it works with, or refused with a word on what to give; pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from mldiagnostics.errors import ConfigurationError

__all__ = ["retention", "window"]


def window(start: object, end: object) -> tuple[float, float]:
    """Return a window as POSIX seconds; bounds without a time zone are UTC.

    Raises ValueError if a bound is None or the window does not end after it begins, TypeError for what is no datetime.
    """
    if start is None or end is None:
        raise ValueError("the window has no start or no end: give both, as datetime")
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        raise TypeError(f"the window from {start!r} to {end!r} has no datetimes: give two")
    bounds = [bound if bound.tzinfo else bound.replace(tzinfo=timezone.utc) for bound in (start, end)]
    if bounds[0] >= bounds[1]:
        raise ValueError(f"the window from {start} to {end} does not end after it begins")
    return bounds[0].timestamp(), bounds[1].timestamp()


_EVER_S = 50 * 365 * 86_400.0


def retention(period: timedelta | float | None) -> timedelta | None:
    """Return how far back logs are read, told as timedelta or in seconds; None, and what no log is older than, is all.

    Raises TypeError for what is no length of time, `ConfigurationError` for one that is not above 0.
    """
    if period is None:
        return None
    if isinstance(period, bool) or not isinstance(period, (int, float, timedelta)):
        raise TypeError(f"max_logs_retention_period={period!r} is no length of time: give seconds or a timedelta")
    seconds = period.total_seconds() if isinstance(period, timedelta) else period
    if not seconds > 0:  # nor NaN
        raise ConfigurationError(f"max_logs_retention_period={period!r} is no past: give some seconds or a timedelta")
    return timedelta(seconds=seconds) if seconds < _EVER_S else None
