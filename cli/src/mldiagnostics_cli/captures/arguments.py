"""Durations and addresses of `mldiag capture`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


STANDARD_INPUT = "-"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000}


def milliseconds(text: str) -> int:
    """Return the milliseconds of a duration with its unit.

    Raises `ConfigurationError`.

    >>> milliseconds("500ms"), milliseconds("1.5s")
    (500, 1500)
    """
    match = _DURATION.fullmatch(text.strip())
    duration = round(float(match[1]) * _UNITS_MS[match[2]]) if match else 0
    if duration < 1:
        raise ConfigurationError(f"{text!r}: not a duration with its unit; pass a value such as 500ms, 2s or 1m")
    return duration


def with_port(address: str, port: int) -> str:
    """Return an address with a port, which is added if it has none.

    >>> with_port("host-0", 9999), with_port("host-0:9012", 9999), with_port("[fd00::7]", 9999)
    ('host-0:9999', 'host-0:9012', '[fd00::7]:9999')
    """
    rest = address.rpartition("]")[2]
    return address if ":" in rest else f"{address}:{port}"


def read_addresses(given: Sequence[str], files: Iterable[str], *, port: int) -> list[str]:
    """Return the given addresses and those of files, with ports.

    Lines of a file that are empty or start with `#` are ignored.

    Raises:
        ConfigurationError: A file cannot be read, or there is no address.
    """
    addresses = [with_port(address, port) for address in (*given, *(each for file in files for each in _lines(file)))]
    if not addresses:
        raise ConfigurationError("capture: no host is given; pass HOST:PORT, or --file with a file of hosts")
    return addresses


def _lines(file: str) -> Iterator[str]:
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--file {file}: cannot be read: {error}; pass a text file of hosts") from error
    lines = (line.strip() for line in text.splitlines())
    return (line for line in lines if line and not line.startswith("#"))
