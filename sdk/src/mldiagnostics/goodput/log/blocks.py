"""Reading of files in blocks of whole lines, with bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES = 256 * 1024
"""Small enough for the processor's cache."""

MAX_LINE_BYTES = 1024 * 1024
"""Longer lines are dropped."""


class Readable(Protocol):
    """A file that is read in pieces."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most `size` bytes, none at the end."""


def whole_lines(file: Readable, *, ended: bool = False) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole lines, each with the file offset of its end.

    If the file has `ended`, the text after its last line break is a line too; otherwise its rest may still be written.
    Of a line that is too long only the end is yielded, as an invalid line.
    """
    rest, end = b"", 0
    while piece := file.read(BLOCK_BYTES):
        whole = piece.rfind(b"\n") + 1
        if whole:
            block, rest = rest + piece[:whole], piece[whole:]
        elif len(rest) < MAX_LINE_BYTES:
            rest += piece
            continue
        else:
            end, block, rest = end + len(rest) + len(piece), b"", b""
        end += len(block)
        yield block, end
    if rest and ended:
        yield rest + b"\n", end + len(rest)
