"""The content of an upload, whose first pieces decide how it is sent."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.store.source import UploadSource

WHOLE_BYTES = 8 * 1024 * 1024
"""The largest content that one request stores; a larger one is stored in parts."""


class Upload:
    """The pieces of an upload: the first ones are read before the request is chosen."""

    def __init__(self, source: UploadSource) -> None:
        self.source = source
        self.failure: BaseException | None = None
        self._pieces = iter(source)
        self._first: deque[memoryview] = deque()

    def start(self) -> bytes | None:
        """Return the whole content if one request can store it, else None."""
        size = 0
        for piece in self._read():
            self._first.append(piece)
            size += piece.nbytes
            if size > WHOLE_BYTES:
                return None
        return self.source.content or b"".join(self._first)

    def rest(self, most: int, url: str) -> bytes:
        """Return the whole content, which must be small enough."""
        content = bytearray()
        for piece in self:
            content += piece
            if len(content) > most:
                raise StoreError(
                    f"{url}: a replacement on a condition exceeds {most >> 20} MiB; store the content under another key"
                )
        return bytes(content)

    def __iter__(self) -> Iterator[memoryview]:
        while self._first:
            yield self._first.popleft()
        yield from self._read()

    def _read(self) -> Iterator[memoryview]:
        try:
            for piece in self._pieces:  # noqa: UP028 - `yield from` would close the pieces with this generator
                yield piece
        except Exception as error:
            self.failure = error
            raise
