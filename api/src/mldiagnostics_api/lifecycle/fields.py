"""Tolerant reads of specs and statuses.

A field of an unexpected type counts as absent. Any controller may write them, so a reader never fails.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

MAX_COUNT: Final = 2**31 - 1

Fields = Mapping[str, Any]


def true_conditions(status: Fields) -> set[str]:
    """Return the types of the conditions that hold."""
    return {text(each.get("type")) for each in mappings(status.get("conditions")) if each.get("status") == "True"}


def any_count(status: Fields, *counts: str) -> bool:
    """Return whether one of the counts is above 0."""
    return any(count(status.get(name)) for name in counts)


def path(value: Any, *keys: str) -> Fields:
    """Return a nested object; empty if it is absent."""
    for key in keys:
        value = mapping(value).get(key)
    return mapping(value)


def mapping(value: Any) -> Fields:
    """Return an object; empty for any other value."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> Iterable[Fields]:
    """Return the objects of a list; empty for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a string; empty for any other value."""
    return value if isinstance(value, str) else ""


def count(value: Any, default: int = 0) -> int:
    """Return a number from 0 to `MAX_COUNT`; the default for any other value."""
    if isinstance(value, bool) or not isinstance(value, int):
        return default
    return bounded(value)


def bounded(count: int) -> int:
    """Return a number from 0 to `MAX_COUNT`."""
    return min(max(count, 0), MAX_COUNT)


def time(value: Any) -> datetime | None:
    """Return a time in UTC; None for any other value."""
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None
