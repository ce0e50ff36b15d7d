"""The numbers of the attempts in a run.json; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.runs.row_values import FieldReader

if TYPE_CHECKING:
    from collections.abc import Mapping


def earlier_attempts(document: Mapping[str, Any]) -> list[FieldReader]:
    """Return the entries of the earlier attempts in a run.json, the oldest first."""
    return FieldReader(document).parts("attempts")


def attempt_number(document: Mapping[str, Any]) -> int | None:
    """Return the number of the last attempt; None where none is recorded.

    Each attempt has a higher number than the one before it: programs that are restarted without a launcher, and
    containers that are restarted in place, record the same number again.

    >>> attempt_number({"attempt": 0, "attempts": [{"attempt": 0}, {"attempt": 0}]})
    2
    """
    return attempt_numbers([*earlier_attempts(document), FieldReader(document)])[-1]


def attempt_numbers(entries: list[FieldReader]) -> list[int | None]:
    """Return the numbers of attempts that follow each other."""
    numbers: list[int | None] = []
    for fields in entries:
        recorded, last = fields.integer("attempt"), numbers[-1] if numbers else None
        numbers.append(recorded if last is None or (recorded is not None and recorded > last) else last + 1)
    return numbers
