"""The data of a put as pieces of bounded size, with size and digests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.store.model import Data

PIECE_BYTES = 1024 * 1024


class UploadSource:
    """Iterates once over the pieces of `data`, of at most 1 MiB each.

    `bytes` and the digests cover the pieces that were read. `md5` costs more than the rest together, so it is optional.
    `content` is the data if it does not change in memory: it is sent without a copy, and digested when somebody asks.
    """

    def __init__(self, data: Data, *, md5: bool = False) -> None:
        self.content = data if isinstance(data, bytes) else None
        self.size_hint = memoryview(data).nbytes if isinstance(data, bytes | bytearray | memoryview) else None
        self.bytes = 0
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 else None  # the digest that gs:// has of an object
        self._pieces = _pieces(data)

    def __iter__(self) -> Iterator[memoryview]:
        for piece in self._pieces:
            self.bytes += piece.nbytes
            if self.content is None:
                self._sha256.update(piece)
            if self._md5:
                self._md5.update(piece)
            yield piece

    def drain(self) -> None:
        """Read the rest, so that the digests cover all data."""
        for _ in self:
            pass

    def sha256(self) -> str:
        """Return the digest of the pieces that were read, in lower-case hex.

        All of `content` counts if there is one.
        """
        return (self._sha256 if self.content is None else hashlib.sha256(self.content)).hexdigest()

    @property
    def md5(self) -> bytes:
        """Digest of the pieces that were read, to compare with a store's own."""
        if self._md5 is None:
            raise ValueError("the MD5 is not computed; create the source with md5=True")
        return self._md5.digest()


def _pieces(data: Data) -> Iterator[memoryview]:
    if isinstance(data, bytes | bytearray | memoryview):
        yield from _cut(memoryview(data).cast("B"))
    elif hasattr(data, "read"):  # an open file iterates by lines, which may be of any length
        while piece := data.read(PIECE_BYTES):
            yield memoryview(piece)
    else:
        for piece in data:
            yield from _cut(memoryview(piece))


def _cut(view: memoryview) -> Iterator[memoryview]:
    for start in range(0, view.nbytes, PIECE_BYTES):
        yield view[start : start + PIECE_BYTES]
