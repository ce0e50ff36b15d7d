"""Records as whole objects in a store, collected in local files first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mldiagnostics.pipeline.sink import BatchPolicy
from mldiagnostics.spool.decisions import MAX_PROCESS_BYTES
from mldiagnostics.spool.queue import SpoolQueue, check_location

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

OBJECT_S = 60.0
"""Longest age of a record in an open file, in seconds."""


class BatchFiles(Protocol):
    """Local files of one process in one format."""

    def open(self) -> None:
        """Create a file unless one is open. Raises `SinkUnavailable` if the disk fails."""

    def append(self, batch: Sequence[Record]) -> None:
        """Append a batch, whole or not at all. Raises `SinkUnavailable` if the disk fails."""

    def close(self) -> None:
        """Close the file; the next batch creates another."""


class ObjectSink:
    """Collects records in local files; uploads each as one object once it is closed.

    Args:
        root: Path or URL of the store.
        origin: The process.
        make_files: Makes the files, below a directory that stands for the store's root.
        records: Most records of a batch.
        part: Distinguishes the sinks of one process for one store.
        max_waiting_bytes: Limit of the bytes that wait for the store.
    """

    durable = True

    def __init__(
        self,
        root: str,
        origin: Origin,
        make_files: Callable[[Path], BatchFiles],
        *,
        records: int,
        part: str = "",
        max_waiting_bytes: int = MAX_PROCESS_BYTES,
    ) -> None:
        self.batch_policy = BatchPolicy(records=records, flush_s=OBJECT_S)
        self._root = root
        self._make_files = make_files
        self._queue = SpoolQueue(root, origin, part=part, max_bytes=max_waiting_bytes)
        self._files: BatchFiles | None = None

    @property
    def spool(self) -> Path:
        """The spool directory of its files. Raises `SinkUnavailable` without one."""
        return self._queue.place

    def open(self) -> None:
        """Prepare the local files. Raises as `check_location` does."""
        check_location(self._root)
        self._ensure_files()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch to a local file. Raises `SpoolFull` at the limit of the queue."""
        files = self._ensure_files()
        self._queue.require_room()
        files.append(batch)

    def flush(self) -> None:
        """Close the file and upload all waiting files."""
        if self._files is not None:
            self._files.close()
        self._queue.deliver()

    def close(self) -> None:
        """Leave the files that were not uploaded to the next process."""
        if self._files is not None:
            self._files.close()
        self._queue.close()

    def _ensure_files(self) -> BatchFiles:
        if self._files is None:
            self._files = self._make_files(self._queue.files)
        return self._files
