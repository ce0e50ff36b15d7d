"""Files of lines, taken in blocks of whole ones: what may be larger than memory is never held at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES = 256 * 1024
"""Small enough for the processor's cache."""

MAX_LINE_BYTES = 1024 * 1024
"""What is longer is no line."""


class Readable(Protocol):
    """What is read in pieces."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most `size` bytes, none at the end."""


def whole_lines(file: Readable, *, ended: bool = False) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines in blocks, and how many bytes were taken with each.

    If the file has `ended`, what follows its last line break is a line too, cut off or not; otherwise the rest of it
    may come yet. Of what is too long for a line only the end is yielded, which can be none.
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
