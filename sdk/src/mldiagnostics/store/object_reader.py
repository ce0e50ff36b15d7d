"""A file over ranges of one version of an object."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

CHUNK_BYTES = 4 * 1024 * 1024
"""Read by one request at most; also the memory of an open object."""

PIECE_BYTES = 64 * 1024
"""Received before the first byte of a response is given to the reader, and read by the first request after a jump."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first bytes of an object, with its ETag and size."""

    etag: str
    size: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """The first bytes of an object as they arrive, with its ETag and size."""

    etag: str
    size: int
    pieces: Iterator[Buffer]

    def head(self) -> Head:
        """Wait for all of them."""
        return Head(self.etag, self.size, b"".join(self.pieces))


class ObjectReader(io.RawIOBase):
    """Reads an object by ranges, the first one as it arrives.

    A range after a jump is small, and each that follows it twice as large, up to `CHUNK_BYTES`.

    Args:
        size: The size of the object.
        first: Its first bytes.
        pieces: The following ones of the same response, which are read if somebody wants them.
        read: Returns the bytes from a start to a stop.
    """

    def __init__(
        self, size: int, first: bytes, pieces: Iterator[Buffer], read: Callable[[int, int], memoryview]
    ) -> None:
        self._size = size
        self._read_range = read
        self._position = 0
        self._start, self._chunk = 0, memoryview(first)
        self._ahead = CHUNK_BYTES
        self._pieces: Iterator[Buffer] | None = pieces

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
        piece = self._next(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readall(self) -> bytes:  # type: ignore[explicit-override]
        """Read what follows, as it arrives: the inherited method asks for 8 KiB at a time.

        Pieces go to their place at once. Kept until the end, they and the result exceed what the allocator holds back,
        and each read would get its memory from the system anew.
        """
        if self._position >= self._size:
            return b""
        whole = io.BytesIO()
        whole.seek(self._size - self._position - 1)
        whole.write(b"\0")
        whole.seek(0)
        whole.write(self._next(CHUNK_BYTES))
        if self._position == len(self._chunk):
            pieces, self._pieces = self._pieces, None
            with contextlib.suppress(StoreError):  # it was left unread for too long
                for piece in pieces or ():
                    self._position += whole.write(piece)
            self._start, self._chunk = self._position, memoryview(b"")
        while self._position < self._size:
            whole.write(self._next(CHUNK_BYTES))
        return whole.getvalue()

    def close(self) -> None:  # type: ignore[explicit-override]
        """Drop a response that was not read to its end, which holds a connection."""
        self._pieces = None
        super().close()

    def _next(self, size: int) -> memoryview:
        """Return at most so many of the next bytes, and none at the end."""
        if self._position >= self._size:
            return memoryview(b"")
        if not self._start <= self._position < self._start + len(self._chunk):
            self._load()
        inside = self._position - self._start
        piece = self._chunk[inside : inside + size]
        self._position += len(piece)
        return piece

    def _load(self) -> None:
        """Have the chunk of the position: the first response's rest or another range."""
        pieces, self._pieces = self._pieces, None
        if pieces and self._position < min(CHUNK_BYTES, self._size):
            with contextlib.suppress(StoreError):  # it was left unread for too long
                self._chunk = memoryview(b"".join((self._chunk, *pieces)))
                if self._position < len(self._chunk):
                    return
        is_jump = self._position != self._start + len(self._chunk)
        self._ahead = PIECE_BYTES if is_jump else min(2 * self._ahead, CHUNK_BYTES)
        stop = min(self._position + self._ahead, self._size)
        self._start, self._chunk = self._position, self._read_range(self._position, stop)
