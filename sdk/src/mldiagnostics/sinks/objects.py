"""Records as whole objects in a store: collected in files on the local disk, put there once they are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.pipeline.sink import BatchPolicy
from mldiagnostics.sinks.segments import Segments
from mldiagnostics.spool.decisions import MAX_PROCESS_BYTES
from mldiagnostics.spool.queue import UploadQueue, check_place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

OBJECT_BYTES = 8 * 1024 * 1024
OBJECT_S = 60.0
"""How old the oldest record in an object that is still open may be."""


class ObjectJsonlSink:
    """Collects lines in files on the local disk and puts each, once it is closed, into a store as one object.

    `folder` is where, below the store's root. The files' numbers follow `number`.
    """

    pace = BatchPolicy(records=256, flush_s=OBJECT_S)
    durable = True

    def __init__(
        self,
        root: str,
        folder: str,
        origin: Origin,
        *,
        object_bytes: int = OBJECT_BYTES,
        max_waiting_bytes: int = MAX_PROCESS_BYTES,
        number: int = 0,
    ) -> None:
        self._root = root
        self._folder = folder
        self._origin = origin
        self._object_bytes = object_bytes
        self._number = number
        self._queue = UploadQueue(root, origin, max_waiting_bytes=max_waiting_bytes)
        self._segments: Segments | None = None

    @property
    def spool(self) -> Path:
        """The directory where its files wait. Raises `SinkUnavailable` if there is none."""
        return self._queue.place

    def open(self) -> None:
        """Find room on the local disk. Raises as `maker` does: only now the run's own storage is known."""
        check_place(self._root)
        self._begin()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch to a local file. Raises `SpoolFull` when too much waits for the store."""
        segments = self._begin()
        self._queue.require_room()
        segments.append(batch)

    def flush(self) -> None:
        """Close the file and put all that waits into the store."""
        if self._segments is not None:
            self._segments.close()
        self._queue.deliver()

    def close(self) -> None:
        """Leave what could not be delivered to the next process."""
        if self._segments is not None:
            self._segments.close()
        self._queue.close()

    def _begin(self) -> Segments:
        if self._segments is None:
            self._segments = Segments(
                self._queue.files / self._folder, self._origin, max_bytes=self._object_bytes, number=self._number
            )
        return self._segments
