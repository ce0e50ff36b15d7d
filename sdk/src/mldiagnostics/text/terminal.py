"""Make text safe to print: names of runs and jobs come from files and programs of other people; pure."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str, *, keep: str = "") -> str:
    r"""Return the text with escapes such as `\x1b` for characters that a terminal would act on or hide.

    These are control characters (a terminal would move its cursor or change its title), marks that reverse the
    direction of writing, and halves of surrogate pairs, which cannot be encoded.

    Args:
        text: any text.
        keep: characters that stay as they are, such as a newline between the lines of a message.

    >>> printable("loss\x1b[2J")
    'loss\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
