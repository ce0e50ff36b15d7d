"""Numbers of things in messages; pure."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
