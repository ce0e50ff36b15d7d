"""A file over ranges of one version of an object."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES = 4 * 1024 * 1024
"""Read by one request; also the memory of an open object."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first bytes of an object, with its ETag and size."""

    etag: str
    size: int
    content: bytes


class ObjectReader(io.RawIOBase):
    """Reads an object by ranges of at most `CHUNK_BYTES`.

    Args:
        size: The size of the object.
        first: Its first bytes.
        read: Returns the bytes from a start to a stop.
    """

    def __init__(self, size: int, first: bytes, read: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._read_range = read
        self._position = 0
        self._start, self._chunk = 0, first

    def readable(self) -> bool:  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        """Return true."""
        return True

    def seekable(self) -> bool:  # type: ignore[explicit-override]
        """Return true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:  # type: ignore[explicit-override]
        """Set the position and return it; nothing is read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"{offset}: the position is before the start of the object")
        self._position = base + offset
        return self._position

    def tell(self) -> int:  # type: ignore[explicit-override]
        """Return the position."""
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[explicit-override,override]
        """Read the next bytes into the buffer and return their number."""
        if self._position >= self._size:
            return 0
        if not self._start <= self._position < self._start + len(self._chunk):
            stop = min(self._position + CHUNK_BYTES, self._size)
            self._start, self._chunk = self._position, self._read_range(self._position, stop)
        inside = self._position - self._start
        piece = self._chunk[inside : inside + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
