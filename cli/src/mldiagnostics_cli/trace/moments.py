"""Times in logs as whole microseconds since 1970; pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from mldiagnostics_api.formats import EPOCH

CLOCK = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?\s?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
"""A calendar time as RFC 3339, Python's logging and most programs write it; UTC without a zone."""

_MICROSECOND = timedelta(microseconds=1)
_SECONDS_BELOW, _MILLISECONDS_BELOW, _MICROSECONDS_BELOW = 1e11, 1e14, 1e17
"""A number below one of these has this unit: all of them are later than the year 5000."""


def microseconds(value: Any) -> int | None:
    """Return the microseconds of a calendar time or of a number since 1970.

    None for any other value.

    A number may be in seconds, milliseconds, microseconds or nanoseconds.

    >>> microseconds("2026-11-21T10:00:00.123456789Z"), microseconds(1795255200.5)
    (1795255200123456, 1795255200500000)
    """
    if isinstance(value, str):
        match = CLOCK.match(value)
        return None if match is None else of_clock(*match.group("second", "fraction", "zone"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MICROSECONDS_BELOW * 1e3:
        return None
    if value < _SECONDS_BELOW:
        return round(value * 1e6)
    if value < _MILLISECONDS_BELOW:
        return round(value * 1e3)
    return round(value) if value < _MICROSECONDS_BELOW else int(value) // 1000


def of_clock(second: str, fraction: str | None, zone: str | None) -> int | None:
    """Return the microseconds of the parts of a calendar time.

    None if there is no such time.
    """
    whole = _whole(second, zone or "")
    return None if whole is None else whole + (int(fraction[:6].ljust(6, "0")) if fraction else 0)


def of_glog(stamp: str, year: int, *, latest: int | None = None) -> int | None:
    """Return the microseconds of glog's `1121 10:00:00.123456`, which has no year.

    Args:
        stamp: The time.
        year: Its year.
        latest: A moment in microseconds; a later time, and a day that the year lacks, is of the year before.
    """
    month_day, _, clock = stamp.partition(" ")
    clock, _, fraction = clock.partition(".")
    t = of_clock(f"{year:04}-{month_day[:2]}-{month_day[2:]} {clock}", fraction or None, None)
    return of_glog(stamp, year - 1) if latest is not None and (t is None or t > latest) else t


@lru_cache(maxsize=4096)
def _whole(second: str, zone: str) -> int | None:
    offset = "+00:00" if zone in {"", "Z", "UTC"} else zone
    try:
        return (datetime.fromisoformat(f"{second}{offset}") - EPOCH) // _MICROSECOND
    except ValueError:
        return None
