"""Make text safe to print, as names of runs and jobs may come from others; pure."""

from __future__ import annotations


def printable(text: str, *, keep: str = "") -> str:
    r"""Return the text with control characters escaped, such as `\x1b`.

    Escaped are control characters, which a terminal would execute, marks that reverse the direction of writing, and
    halves of surrogate pairs, which cannot be encoded.

    Args:
        text: any text.
        keep: characters that stay unchanged, such as the newlines of a message.

    >>> printable("loss\x1b[2J")
    'loss\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escaped(each) for each in text)


def encodable(text: str, encoding: str) -> str:
    """Return a text for this encoding; `#`, `:` and `.` replace block characters."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    return text


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


_PLAIN = str.maketrans(
    {"█": "#", "…": "~", "µ": "u", **dict.fromkeys("░▏▎▍▌▋▊▉▁▂▃", "."), **dict.fromkeys("▄▅▆▇", ":")}
)
