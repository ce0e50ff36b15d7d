"""Records as whole objects in a store: collected in files on the local disk, put there once they are closed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MissingExtraError, StoreError
from mldiagnostics.layout import sanitize
from mldiagnostics.sinks import shelter
from mldiagnostics.sinks.model import Pace, SinkRefused, SinkUnavailable
from mldiagnostics.sinks.segments import Segments
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.origin import Origin
    from mldiagnostics.records import Record
    from mldiagnostics.sinks.shelter import Shelter

OBJECT_BYTES = 8 * 1024 * 1024
OBJECT_S = 60.0
"""How old the oldest record in an object that is still open may be."""

MAX_WAITING_BYTES = 256 * 1024 * 1024
"""How much may wait on the local disk for a store that does not answer."""


class StoredLines:
    """Collects lines in files on the local disk and puts each, once it is closed, into a store as one object.

    A file that the process did not bring there any more is left for the next one with records for the same store.
    """

    pace = Pace(records=256, flush_s=OBJECT_S)
    durable = True

    def __init__(
        self,
        root: str,
        origin: Origin,
        *,
        object_bytes: int = OBJECT_BYTES,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._root = root.rstrip("/")
        self._origin = origin
        self._object_bytes = object_bytes
        self._max_waiting_bytes = max_waiting_bytes
        self._shelter: Shelter | None = None
        self._segments: Segments | None = None

    def open(self) -> None:
        """Find room on the local disk. Raises as `maker` does: only now the run's own storage is known."""
        check_place(self._root)
        self._begin()

    def write(self, batch: Sequence[Record]) -> None:
        """Append the batch to a local file. Raises `SinkRefused` when too much waits for the store."""
        segments = self._begin()
        if self._shelter is not None and self._shelter.bytes() > self._max_waiting_bytes:
            raise SinkRefused(f"{self._max_waiting_bytes >> 20} MiB wait for {self._root} already, which takes nothing")
        segments.append(batch)

    def flush(self) -> None:
        """Close the file and put all that waits into the store, also what dead processes left."""
        if self._segments is not None and self._shelter is not None:
            self._segments.close()
            self._deliver(self._shelter)
        for left in shelter.abandoned(self._root):
            try:
                self._deliver(left)
            except SinkUnavailable:
                left.leave()
                raise
            left.remove()

    def close(self) -> None:
        """Leave what could not be delivered to the next process."""
        if self._segments is not None and self._shelter is not None:
            self._segments.close()
            if self._shelter.bytes():
                self._shelter.leave()
            else:
                self._shelter.remove()

    def _begin(self) -> Segments:
        if self._shelter is None:
            self._shelter = shelter.claim(self._root, self._origin)
        if self._segments is None:
            folder = self._shelter.files / sanitize(self._origin.run_id)
            self._segments = Segments(folder, self._origin, max_bytes=self._object_bytes)
        return self._segments

    def _deliver(self, waiting: Shelter) -> None:
        """Put the files into the store, the oldest first, and delete each that is there."""
        try:
            store = open_store(self._root)
            for path in sorted(path for path in waiting.files.rglob("*") if path.is_file()):
                with path.open("rb") as file:
                    store.put(path.relative_to(waiting.files).as_posix(), file)
                path.unlink()
        except StoreError as error:
            raise SinkUnavailable(str(error)) from error
        except OSError as error:
            raise SinkUnavailable(f"{waiting.files}: {error.strerror}") from error


def check_place(place: str) -> None:
    """Raise `ConfigurationError` or `MissingExtraError` if `open_store` would, without loading Google's client."""
    if not place.startswith("gs://"):
        open_store(place)
    elif not place.removeprefix("gs://").strip("/"):
        raise ConfigurationError(f"{place!r} names no bucket: write gs://bucket or gs://bucket/prefix")
    else:
        try:
            found = find_spec("google.cloud.storage")
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise MissingExtraError(extra="gcs", needed_for=place)
