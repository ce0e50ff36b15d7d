"""Reading of files in blocks of whole lines, with bounded memory.

A growing file is read on from the end of the last read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

BLOCK_BYTES = 256 * 1024
"""Small enough for the processor's cache."""

MAX_LINE_BYTES = 1024 * 1024
"""Longer lines are dropped."""

LISTINGS = 4
"""So often a log is listed in one reading, if a file is gone before it is read."""

CHECKED_BYTES = 128
"""Text that is compared at both ends of the lines that were read: another file has other text there."""


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


@dataclass(slots=True)
class ReadPosition:
    """How far a growing file was read.

    The text of both ends recognizes the file: another one can be at its path.
    """

    offset: int = 0
    """End of the last whole line that was read."""
    head: bytes = b""
    """The first bytes; empty if the position was stored by an earlier process."""
    tail: bytes = b""
    """The last bytes before `offset`."""

    def is_in(self, file: BinaryIO) -> bool:
        """Return whether the lines that were read are still in the file.

        The file is then at their end.
        """
        same = file.read(len(self.head)) == self.head
        file.seek(self.offset - len(self.tail))
        return same and file.read(len(self.tail)) == self.tail

    def new_lines(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """Yield blocks of whole lines after the position, each with its end.

        `move` takes both.
        """
        start = self.offset
        file.seek(start)
        for block, end in whole_lines(file):
            yield block, start + end

    def move(self, block: bytes, end: int) -> None:
        """Continue after a block."""
        if len(self.head) < CHECKED_BYTES and self.offset == len(self.head):
            self.head = (self.head + block)[:CHECKED_BYTES]
        self.offset, self.tail = end, block[-CHECKED_BYTES:]
