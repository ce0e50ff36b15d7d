"""Records as whole objects in a store: collected in files on the local disk, put there once they are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.sinks.model import Pace
from mldiagnostics.sinks.outbox import MAX_WAITING_BYTES, Outbox, check_place
from mldiagnostics.sinks.segments import Segments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.origin import Origin
    from mldiagnostics.records import Record

OBJECT_BYTES = 8 * 1024 * 1024
OBJECT_S = 60.0
"""How old the oldest record in an object that is still open may be."""


class StoredLines:
    """Collects lines in files on the local disk and puts each, once it is closed, into a store as one object.

    `folder` is where, below the store's root.
    """

    pace = Pace(records=256, flush_s=OBJECT_S)
    durable = True

    def __init__(
        self,
        root: str,
        folder: str,
        origin: Origin,
        *,
        object_bytes: int = OBJECT_BYTES,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._root = root
        self._folder = folder
        self._origin = origin
        self._object_bytes = object_bytes
        self._outbox = Outbox(root, origin, max_waiting_bytes=max_waiting_bytes)
        self._segments: Segments | None = None

    def open(self) -> None:
        """Find room on the local disk. Raises as `maker` does: only now the run's own storage is known."""
        check_place(self._root)
        self._begin()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch to a local file. Raises `SinkRefused` when too much waits for the store."""
        segments = self._begin()
        self._outbox.require_room()
        segments.append(batch)

    def flush(self) -> None:
        """Close the file and put all that waits into the store, also what dead processes left."""
        if self._segments is not None:
            self._segments.close()
        self._outbox.deliver()

    def close(self) -> None:
        """Leave what could not be delivered to the next process."""
        if self._segments is not None:
            self._segments.close()
        self._outbox.close()

    def _begin(self) -> Segments:
        if self._segments is None:
            self._segments = Segments(self._outbox.files / self._folder, self._origin, max_bytes=self._object_bytes)
        return self._segments
