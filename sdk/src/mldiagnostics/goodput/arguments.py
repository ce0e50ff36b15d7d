"""What people give to the calculator, made what it works with, or refused with a word on what to give; pure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from mldiagnostics.errors import ConfigurationError

__all__ = ["retention", "window"]


def window(start: object, end: object) -> tuple[float, float]:
    """Return a window as POSIX seconds."""
    if start is None or end is None:
        raise ValueError("the window has no start or no end: give both, as datetime")
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        raise TypeError(f"the window from {start!r} to {end!r} has no datetimes: give two")
    bounds = [bound if bound.tzinfo else bound.replace(tzinfo=timezone.utc) for bound in (start, end)]
    if bounds[0] >= bounds[1]:
        raise ValueError(f"the window from {start} to {end} does not end after it begins")
    return bounds[0].timestamp(), bounds[1].timestamp()


def retention(period: timedelta | float | None) -> timedelta | None:
    """Return how far back logs are read, told as timedelta or in seconds."""
    if period is None:
        return None
    if isinstance(period, bool) or not isinstance(period, (int, float, timedelta)):
        raise TypeError(f"max_logs_retention_period={period!r} is no length of time: give seconds or a timedelta")
    try:
        found = period if isinstance(period, timedelta) else timedelta(seconds=period)
    except (OverflowError, ValueError):  # longer than calendars, or NaN
        found = timedelta(0)
    if found <= timedelta(0):
        raise ConfigurationError(f"max_logs_retention_period={period!r} is no past: give some seconds or a timedelta")
    return found
