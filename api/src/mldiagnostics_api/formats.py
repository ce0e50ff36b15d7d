"""Formats of times and of quoted values in messages."""

from datetime import UTC, datetime


def parse_time(text: object) -> datetime:
    """Parse a time of the API server, RFC 3339 in UTC, or raise ValueError."""
    if not isinstance(text, str) or not text.endswith("Z"):
        raise ValueError(f"creation time: {quote(text)} is not a time such as 2026-04-24T03:04:05Z")
    return datetime.fromisoformat(text)


def format_time(instant: datetime) -> str:
    """Format a time as the API server does; the peer SDK requires the Z."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def quote(value: object, limit: int = 80) -> str:
    """Quote a user's value for a message, in ASCII and shortened."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[:limit]}…'"
