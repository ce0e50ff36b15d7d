"""Moments, durations and intervals from the command line; pure."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.timestamps import END_OF_TIME_S

_WINDOW = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)?")
_FRACTION = re.compile(r"\.(\d{1,6})\d*")
_UNITS = {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str) -> int:
    """Return a moment as microseconds of POSIX time.

    It is written `2026-11-21T10:00:00Z`, in UTC if it has no time zone, or `1795254000.5`. Raises `ConfigurationError`
    unless it lies between 1970 and 2200.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = _calendar(text)
    if not 0 <= seconds < END_OF_TIME_S:
        raise ConfigurationError(f"{text!r}: not a moment; write 2026-11-21T10:00:00Z or seconds since 1970")
    return round(seconds * 1e6)


def _calendar(text: str) -> float:
    """Return the POSIX seconds of an ISO 8601 time, below 0 for any other text.

    Python 3.10 parses neither `Z` nor all fractions.
    """
    text = _FRACTION.sub(lambda match: f".{match[1]:0<6}", re.sub(r"[zZ]$", "+00:00", text.strip()))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return -1.0
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()


def window(text: str) -> float:
    """Return the seconds of a duration such as `90`, `45s`, `30m`, `1h`, `7d` or `2w`.

    Raises `ConfigurationError` for any other text.
    """
    match = _WINDOW.fullmatch(text.strip())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds < END_OF_TIME_S:
        raise ConfigurationError(f"{text!r}: not a length of time; pass seconds, or 45s, 30m, 1h, 7d, 2w")
    return seconds


def positive(text: str) -> float:
    """Return a number above 0. Raises `ConfigurationError` for any other text."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < END_OF_TIME_S:
        raise ConfigurationError(f"{text!r}: not a number above 0; pass a number such as 8")
    return number


def interval(start: str, end: str) -> tuple[int, int]:
    """Return an interval from two moments. Raises `ConfigurationError` if it is empty."""
    bounds = moment(start), moment(end)
    if bounds[0] >= bounds[1]:
        raise ConfigurationError(f"interval from {start} to {end}: does not end after its start; use a later end")
    return bounds


def exclusions(text: str, name: str) -> list[tuple[int, int]]:
    """Return the intervals of a JSON list.

    Its entries are `{"start_time_utc": …, "end_time_utc": …}`. Raises `ConfigurationError`, with the file `name` and
    the entry, for any other text.
    """
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name}: not JSON: {error}; {_EXPECTED}") from error
    if not isinstance(entries, list):
        raise ConfigurationError(f"{name}: not a list; {_EXPECTED}")
    return [_exclusion(entry, f"{name}, entry {number}") for number, entry in enumerate(entries, start=1)]


_EXPECTED = 'write [{"start_time_utc": "2026-11-21T10:00:00Z", "end_time_utc": "2026-11-21T11:00:00Z"}]'


def _exclusion(entry: Any, where: str) -> tuple[int, int]:
    if not isinstance(entry, dict) or not {"start_time_utc", "end_time_utc"} <= entry.keys():
        raise ConfigurationError(f"{where}: no start_time_utc and end_time_utc; {_EXPECTED}")
    try:
        return interval(str(entry["start_time_utc"]), str(entry["end_time_utc"]))
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
