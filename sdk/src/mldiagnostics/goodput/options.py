"""What people type: moments, lengths of time and stretches, as whole microseconds and seconds; pure."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

from mldiagnostics.errors import ConfigurationError

__all__ = ["exclusions", "interval", "moment", "positive", "window"]

_WINDOW = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)?")
_FRACTION = re.compile(r"\.(\d{1,6})\d*")
_UNITS = {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LATEST_S = 7_258_118_400  # the year 2200


def moment(text: str) -> int:
    """Return the microseconds of POSIX time of `2026-11-21T10:00:00Z` or `1795254000.5`; no time zone means UTC.

    Raises `ConfigurationError` for what is no moment between 1970 and 2200.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = _calendar(text)
    if not 0 <= seconds < _LATEST_S:
        raise ConfigurationError(f"{text!r} is no moment: write 2026-11-21T10:00:00Z or seconds since 1970")
    return round(seconds * 1e6)


def _calendar(text: str) -> float:
    """Return the seconds of an ISO 8601 text, below 0 if it is none; Python 3.10 knows neither Z nor all fractions."""
    text = _FRACTION.sub(lambda found: f".{found[1]:0<6}", re.sub(r"[zZ]$", "+00:00", text.strip()))
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return -1.0
    return (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()


def window(text: str) -> float:
    """Return the seconds of `90`, `45s`, `30m`, `1h`, `7d` or `2w`. Raises `ConfigurationError` for anything else."""
    found = _WINDOW.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0 < seconds < _LATEST_S:
        raise ConfigurationError(f"{text!r} is no length of time: write seconds, or 45s, 30m, 1h, 7d, 2w")
    return seconds


def positive(text: str) -> float:
    """Return a number above 0. Raises `ConfigurationError` for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < _LATEST_S:
        raise ConfigurationError(f"{text!r} is no number above 0")
    return number


def interval(start: str, end: str) -> tuple[int, int]:
    """Return a stretch from two moments. Raises `ConfigurationError` if it does not end after it begins."""
    stretch = moment(start), moment(end)
    if stretch[0] >= stretch[1]:
        raise ConfigurationError(f"the interval from {start} to {end} does not end after it begins")
    return stretch


def exclusions(text: str, name: str) -> list[tuple[int, int]]:
    """Return the stretches of a JSON text `[{"start_time_utc": …, "end_time_utc": …}, …]`, as of the file `name`.

    Raises `ConfigurationError` naming file and entry where it says anything else.
    """
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{name} is no JSON: {error}") from error
    if not isinstance(entries, list):
        raise ConfigurationError(f"{name} holds no list: {_EXPECTED}")
    return [_exclusion(entry, f"{name}, entry {number}") for number, entry in enumerate(entries, start=1)]


_EXPECTED = 'write [{"start_time_utc": "2026-11-21T10:00:00Z", "end_time_utc": "2026-11-21T11:00:00Z"}]'


def _exclusion(entry: Any, where: str) -> tuple[int, int]:
    if not isinstance(entry, dict) or not {"start_time_utc", "end_time_utc"} <= entry.keys():
        raise ConfigurationError(f"{where} has no start_time_utc and end_time_utc: {_EXPECTED}")
    try:
        return interval(str(entry["start_time_utc"]), str(entry["end_time_utc"]))
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
