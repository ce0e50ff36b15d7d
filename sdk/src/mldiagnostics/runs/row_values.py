"""Values of rows as JSON, and values out of JSON that may hold anything; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAX_NUMBER = 1e300  # also keeps out NaN and infinities


class FieldReader:
    """Values by key and type out of JSON that may hold anything."""

    def __init__(self, fields: object) -> None:
        self.fields: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}

    def text(self, key: str) -> str:
        """Return a text, empty if there is none."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """Return a number, None if there is none."""
        value = self.fields.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if -_MAX_NUMBER < value < _MAX_NUMBER else None

    def integer(self, key: str) -> int | None:
        """Return a whole number, None if there is none."""
        value = self.number(key)
        return None if value is None else int(value)

    def counts(self, key: str) -> dict[str, int]:
        """Return the positive whole numbers of an object below, by name."""
        part = self.part(key)
        return {name: count for name in part.fields if (count := part.integer(name)) is not None and count > 0}

    def texts(self, key: str) -> list[str]:
        """Return the texts of a list; other values of it are left out."""
        values = self.fields.get(key)
        return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []

    def numbers(self, key: str) -> dict[str, float]:
        """Return the numbers of an object below, by name."""
        part = self.part(key)
        return {name: number for name in part.fields if (number := part.number(name)) is not None}

    def part(self, key: str) -> FieldReader:
        """Return the reader of an object below, an empty one if there is none."""
        return FieldReader(self.fields.get(key))

    def parts(self, key: str) -> list[FieldReader]:
        """Return the readers of a list of objects below, none if there is none."""
        values = self.fields.get(key)
        return [FieldReader(value) for value in values] if isinstance(values, list) else []
