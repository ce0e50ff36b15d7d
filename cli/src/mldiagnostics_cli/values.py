"""Times, sizes and numbers as short texts; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection


DASH = "-"
"""Stands for a value that is not known."""

_UNITS = (("d", 86_400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1))
_LONG = 10
"""From so many of a unit on, the smaller unit is left out."""

_SHOWN_NAMES = 5
_ID_SHOWN = 16
"""Characters of an id: the run of an MLRun's name has as many, and other commands take them."""

_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti")
_SIZE = re.compile(rf"([0-9]{{1,15}})({'|'.join(_PREFIXES)})", re.ASCII)


def short_id(run_id: str) -> str:
    """Return the part of a run's id that tables and completion show.

    >>> short_id("0123456789abcdef0123")
    '0123456789abcdef'
    """
    return run_id[:_ID_SHOWN]


def age(seconds: float | None) -> str:
    """Return a duration as kubectl writes it.

    >>> age(42), age(185), age(3 * 3600 + 60), age(12 * 86_400)
    ('42s', '3m5s', '3h1m', '12d')
    """
    if seconds is None:
        return DASH
    whole = max(0, int(seconds))
    for unit, length, small_unit, small_length in _UNITS:
        if whole >= length:
            count, rest = divmod(whole, length)
            small = rest // small_length
            return f"{count}{unit}" + (f"{small}{small_unit}" if small and count < _LONG else "")
    return f"{whole}s"


def moment(seconds: float | None) -> str:
    """Return Unix seconds as a time in UTC.

    >>> moment(1.0), moment(1e20)
    ('1970-01-01 00:00:01 UTC', '-')
    """
    if seconds is None:
        return DASH
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):  # a time that no calendar has
        return DASH


def size(number_of_bytes: float | None) -> str:
    """Return a size with a binary prefix.

    >>> size(17), size(3 * 1024**2)
    ('17 B', '3.0 MiB')
    """
    if number_of_bytes is None:
        return DASH
    shown, power = float(number_of_bytes), 0
    while shown >= 1024 and power < len(_PREFIXES) - 1:
        shown, power = shown / 1024, power + 1
    return f"{shown:.1f} {_PREFIXES[power]}B" if power else f"{int(shown)} B"


def number(value: float | None) -> str:
    """Return a number with four digits at most.

    >>> number(0.12345), number(12_000_000), number(3)
    ('0.1235', '1.2e+07', '3')
    """
    return DASH if value is None else f"{value:.4g}"


def some_names(names: Collection[str], *, like: str) -> str:
    """Return names for a message, the most similar ones first if there are many.

    >>> some_names({"loss", "lr"}, like="los"), some_names([f"m{n}" for n in range(500)], like="m17")
    ('loss, lr', 'm17, m417, m317, m217, m197 and 495 more')
    """
    if len(names) <= _LONG:
        return ", ".join(sorted(names)) or "none"
    shown = get_close_matches(like, sorted(names), n=_SHOWN_NAMES, cutoff=0) or sorted(names)[:_SHOWN_NAMES]
    return f"{', '.join(shown)} and {len(names) - len(shown)} more"


def bytes_of(text: str) -> int:
    """Return a number of bytes that is written as Kubernetes writes it.

    Raises:
        ConfigurationError: The text is not a size of at least one byte.

    >>> bytes_of("20Gi"), bytes_of("512")
    (21474836480, 512)
    """
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise ConfigurationError(f"{text!r}: not a size; pass a size such as 20Gi")
    return int(match[1]) << 10 * _PREFIXES.index(match[2])
