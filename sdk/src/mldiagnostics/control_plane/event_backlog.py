"""The goodput events of a process, kept until they are persisted."""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections import deque
from typing import IO, TYPE_CHECKING, NamedTuple

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.events.packing import MAX_BYTES, Packer
from mldiagnostics.text.strict_json import dumps

if TYPE_CHECKING:
    from typing import Any

    from mldiagnostics.goodput.events.packing import Entry


BLOCK = 256
"""Events of one compressed block: about a kilobyte, packed within 1 ms."""

KEPT_BYTES = 8 * 1024 * 1024
"""Memory of compressed blocks: about two million steps, six hours at a hundred a second."""

_MAX_EVENTS = 2**16
"""Most events of one report."""


class _Block(NamedTuple):
    first: int
    size: int
    """Bytes of its JSON."""
    content: bytes | tuple[int, int]
    """Compressed JSON of its items, or offset and length in the spool."""


class EventBacklog:
    """Events by index, oldest first; used under the lock of its owner.

    Persisted events are kept as long as there is room, as a control plane may lose its storage and ask for them again.
    Beyond the limit, persisted blocks are dropped and the others go to a file.
    """

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self.count = 0
        """Number of events so far."""
        self._kept_bytes = kept_bytes
        self._persisted = 0
        self._blocks: deque[_Block] = deque()
        self._spooled: deque[_Block] = deque()  # older than all blocks in memory
        self._spool: IO[bytes] | None = None
        self._bytes = 0
        self._tail: list[Any] = []
        self._packer = Packer()

    def add(self, entry: Entry) -> None:
        """Add the next event."""
        self._tail.append(self._packer.pack(entry))
        self.count += 1
        if len(self._tail) >= BLOCK:
            self._close_block()

    def note_persisted(self, count: int) -> None:
        """Note how many events the control plane has; it may be fewer than before."""
        self._persisted = min(count, self.count)
        while self._spooled and self._spooled[0].first + BLOCK <= self._persisted:
            self._spooled.popleft()
        self._free_spool()

    def stop(self) -> None:
        """End with the persisted events: the control plane keeps no more.

        They are kept, for a control plane that loses its storage and asks for them again; later ones are dropped.
        """
        if self._tail:
            self._close_block()
        self.count = self._persisted
        while self._blocks and self._blocks[-1].first >= self.count:
            self._bytes -= len(self._blocks.pop().content)
        while self._spooled and self._spooled[-1].first >= self.count:
            self._spooled.pop()
        self._free_spool()

    def unpersisted(self) -> tuple[int, str]:
        """Return the first index and the JSON items of the next events to report.

        They start at most a block before the first event that is not persisted, and are as many as a report may have.
        """
        texts: list[str] = []
        first, size = self.count, 0
        if self._persisted >= self.count:
            return first, ""
        for block in (*self._spooled, *self._blocks):
            following = block.first + BLOCK
            if following <= self._persisted:
                continue
            if texts and (size + block.size > MAX_BYTES - 2 or following - first > _MAX_EVENTS):
                return first, ",".join(texts)
            first = first if texts else block.first
            size += block.size + 1
            texts.append(self._text(block))
        tail = dumps(self._tail)[1:-1] if self._tail else ""
        if tail and (not texts or (size + len(tail) <= MAX_BYTES - 2 and self.count - first <= _MAX_EVENTS)):
            first = first if texts else self.count - len(self._tail)
            texts.append(tail)
        return first, ",".join(texts)

    def _close_block(self) -> None:
        text = dumps(self._tail)[1:-1]
        content = zlib.compress(text.encode(), 6)
        self._blocks.append(_Block(self.count - len(self._tail), len(text), content))
        self._bytes += len(content)
        self._tail, self._packer = [], Packer()
        while self._bytes > self._kept_bytes and self._blocks:
            self._evict(self._blocks.popleft())

    def _evict(self, block: _Block) -> None:
        assert isinstance(block.content, bytes)  # noqa: S101 - for mypy: it is in memory
        self._bytes -= len(block.content)
        if block.first + BLOCK <= self._persisted:
            return
        try:
            if self._spool is None:
                self._spool = tempfile.TemporaryFile(prefix="mldiagnostics-events-")  # noqa: SIM115 - lives as this
            offset = self._spool.seek(0, 2)
            self._spool.write(block.content)
            self._spooled.append(block._replace(content=(offset, len(block.content))))
        except OSError as error:
            warn_once(
                "control-plane-events",
                f"control plane: goodput events of this run are not reported: {error}; the log in its storage has them",
            )

    def _text(self, block: _Block) -> str:
        content = block.content
        if isinstance(content, tuple):
            assert self._spool is not None  # noqa: S101 - for mypy: a spooled block is in it
            self._spool.seek(content[0])
            content = self._spool.read(content[1])
        return zlib.decompress(content).decode()

    def _free_spool(self) -> None:
        """Delete the file if none of its blocks is needed."""
        if self._spool is not None and not self._spooled:
            self._spool.close()
            self._spool = None

    def close(self) -> None:
        """Delete the file."""
        if self._spool is not None:
            with contextlib.suppress(OSError):
                self._spool.close()
