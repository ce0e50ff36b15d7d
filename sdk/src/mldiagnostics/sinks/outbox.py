"""Files on the local disk on their way into a store: put there whole, deleted once they are, kept over restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, StoreError
from mldiagnostics.extras import require
from mldiagnostics.sinks import shelter
from mldiagnostics.sinks.model import SinkRefused, SinkUnavailable
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.origin import Origin
    from mldiagnostics.sinks.shelter import Shelter

MAX_WAITING_BYTES = 256 * 1024 * 1024
"""How much may wait on the local disk for a store that does not answer."""


class Outbox:
    """A place for closed files of one process, each at the path that its key in the store shall be.

    What the process did not bring into the store any more is left for the next one that has files of the same `kind`
    for the same store.
    """

    def __init__(
        self, root: str, origin: Origin, *, kind: str = "", max_waiting_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        self._root = root.rstrip("/")
        self._destination = f"{kind} {self._root}".lstrip()
        self._origin = origin
        self._max_waiting_bytes = max_waiting_bytes
        self._shelter: Shelter | None = None

    @property
    def files(self) -> Path:
        """The local directory that stands for the store's root. Raises `SinkUnavailable` if the disk refuses it."""
        return self._claimed().files

    def require_room(self) -> None:
        """Raise `SinkRefused` when too much waits for the store already."""
        if self._claimed().bytes() > self._max_waiting_bytes:
            raise SinkRefused(f"{self._max_waiting_bytes >> 20} MiB wait for {self._root} already, which takes nothing")

    def deliver(self) -> None:
        """Put all that waits into the store, also what dead processes left; no file may be open meanwhile."""
        if self._shelter is not None:
            self._deliver(self._shelter)
        for left in shelter.abandoned(self._destination):
            try:
                self._deliver(left)
            except SinkUnavailable:
                left.leave()
                raise
            left.remove()

    def close(self) -> None:
        """Leave what could not be delivered to the next process."""
        if self._shelter is None:
            return
        if self._shelter.bytes():
            self._shelter.leave()
        else:
            self._shelter.remove()

    def _claimed(self) -> Shelter:
        if self._shelter is None:
            self._shelter = shelter.claim(self._destination, self._origin)
        return self._shelter

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
        require("google.cloud.storage", extra="gcs", needed_for=place)
