"""Times as RFC 3339, in documents for people and other programs; pure."""

from __future__ import annotations

from datetime import datetime, timezone

END_OF_TIME_S = 7_258_118_400.0
"""The year 2200: no time of a run is later, and a number of milliseconds is far beyond."""


def timestamp(t: float | None) -> str | None:
    """Return Unix seconds as RFC 3339, in UTC with microseconds; None for None.

    >>> timestamp(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    if t is None:
        return None
    try:
        moment = datetime.fromtimestamp(t, timezone.utc)
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def posix_seconds(text: str) -> float:
    """Return the Unix seconds of a time in UTC that `timestamp` wrote.

    >>> posix_seconds("1970-01-01T00:00:00.500000Z")
    0.5

    Raises:
        ValueError: It is not such a time.
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp()
