"""Records as whole objects in a store, collected in local files first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.pipeline.sink import BatchPolicy
from mldiagnostics.sinks.segments import Segments
from mldiagnostics.spool.decisions import MAX_PROCESS_BYTES
from mldiagnostics.spool.queue import SpoolQueue, check_location

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

OBJECT_BYTES = 8 * 1024 * 1024
OBJECT_S = 60.0
"""Longest age of a record in an open file, in seconds."""


class ObjectJsonlSink:
    """Collects lines in local files and uploads each as one object once it is closed.

    `folder` is the objects' directory below the store's root. The files' numbers follow `number`.
    """

    batch_policy = BatchPolicy(records=256, flush_s=OBJECT_S)
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
        self._queue = SpoolQueue(root, origin, max_bytes=max_waiting_bytes)
        self._segments: Segments | None = None

    @property
    def spool(self) -> Path:
        """The spool directory of its files. Raises `SinkUnavailable` without one."""
        return self._queue.place

    def open(self) -> None:
        """Prepare the local files. Raises as `maker` does, for the run's own storage."""
        check_location(self._root)
        self._ensure_segments()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch to a local file. Raises `SpoolFull` at the limit of the queue."""
        segments = self._ensure_segments()
        self._queue.require_room()
        segments.append(batch)

    def flush(self) -> None:
        """Close the file and upload all waiting files."""
        if self._segments is not None:
            self._segments.close()
        self._queue.deliver()

    def close(self) -> None:
        """Leave the files that were not uploaded to the next process."""
        if self._segments is not None:
            self._segments.close()
        self._queue.close()

    def _ensure_segments(self) -> Segments:
        if self._segments is None:
            self._segments = Segments(
                self._queue.files / self._folder, self._origin, max_bytes=self._object_bytes, number=self._number
            )
        return self._segments
