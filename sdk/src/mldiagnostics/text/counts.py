"""Numbers of things in messages; pure."""

from __future__ import annotations

_AFTER_ONE = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Plural -> singular; other verbs take an s."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, and a verb, in the plural unless it is 1.

    >>> counted(1, "file"), counted(2, "file"), counted(1, "file", "wait")
    ('1 file', '2 files', '1 file waits')
    """
    return _with_verb(f"{number} {noun}{'' if number == 1 else 's'}", verb, number)


def counted_of(part: int, total: int, noun: str, verb: str = "") -> str:
    """Return a part of a number with its noun; a verb agrees with the part.

    >>> counted_of(1, 4, "host", "are"), counted_of(0, 1, "host")
    ('1 of 4 hosts is', '0 of 1 host')
    """
    return _with_verb(f"{part} of {counted(total, noun)}", verb, part)


def _with_verb(subject: str, verb: str, number: int) -> str:
    if verb and number == 1:
        verb = _AFTER_ONE.get(verb, f"{verb}s")
    return f"{subject} {verb}".rstrip()
