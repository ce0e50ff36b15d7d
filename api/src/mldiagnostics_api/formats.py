"""Formats of times, lists and quoted values in messages."""

from collections.abc import Collection
from datetime import UTC, datetime
from itertools import islice
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: object) -> datetime:
    """Parse a time of the API server, RFC 3339 in UTC, or raise ValueError."""
    if not isinstance(text, str) or not text.endswith("Z"):
        raise ValueError(f"creation time: {quote(text)} is not a time such as 2026-04-24T03:04:05Z")
    return datetime.fromisoformat(text)


def optional_time(text: object) -> datetime | None:
    """Parse a time of the API server; None for absent and other values."""
    try:
        return parse_time(text)
    except ValueError:
        return None


def format_time(instant: datetime) -> str:
    """Format a time as the API server does; the peer SDK requires the Z."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def quote(value: object, limit: int = 80) -> str:
    """Quote a user's value for a message, in ASCII and shortened."""
    try:
        text = ascii(value)
    except RecursionError:  # JSON may be nested more deeply than Python formats it
        text = f"a deeply nested {type(value).__name__}"
    return text if len(text) <= limit else f"{text[:limit]}…'"


def enumerated(names: Collection[str], limit: int = 5) -> str:
    """List names for a message; those above the limit are only counted."""
    listed = ", ".join(islice(names, limit))
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"


def moment(unix_s: float | None, *, exact: bool = False) -> datetime | None:
    """Return a time of a report in whole seconds, or None if there is no such time.

    An exact one has microseconds.
    """
    try:
        return None if unix_s is None else datetime.fromtimestamp(unix_s if exact else int(unix_s), UTC)
    except (ValueError, OverflowError, OSError):
        return None
