"""Closed files of one process on their way into a store: put there whole, deleted once they are, kept over restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import (
    ConfigurationError,
    MissingExtraError,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
)
from mldiagnostics.sinks.model import SinkUnavailable, SpooledForNow, SpoolFull
from mldiagnostics.spool import background
from mldiagnostics.spool.decisions import MAX_PROCESS_BYTES
from mldiagnostics.spool.directory import SpoolDirectory, claim
from mldiagnostics.spool.storage import attempt, report_spooling
from mldiagnostics.spool.uploading import upload_all
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin

_LASTING = (MissingExtraError, StoreForbidden, StoreNotFound, StoreFull)
"""What a second try within seconds does not change."""


class UploadQueue:
    """A place for closed files of one process, each at the path that its key in the store shall be.

    What the process did not bring into the store any more is left for the next one.
    """

    def __init__(
        self, root: str, origin: Origin, *, part: str = "", max_waiting_bytes: int = MAX_PROCESS_BYTES
    ) -> None:
        self._root = root.rstrip("/") or root
        self._part = part
        self._origin = origin
        self._max_waiting_bytes = max_waiting_bytes
        self._spool: SpoolDirectory | None = None

    @property
    def files(self) -> Path:
        """The local directory that stands for the store's root. Raises `SinkUnavailable` if no disk can hold it."""
        return self._claimed().files

    @property
    def place(self) -> Path:
        """The directory of the spool, for people. Raises as `files` does."""
        return self._claimed().path

    def require_room(self) -> None:
        """Raise `SpoolFull` when too much waits for the store already."""
        spool = self._claimed()
        if spool.bytes() > min(self._max_waiting_bytes, spool.room):
            raise SpoolFull(
                f"{spool.bytes() >> 20} MiB wait for {self._root} in {spool.path} already: upload them with "
                f"python -m mldiagnostics.upload {spool.path}"
            )

    def deliver(self) -> None:
        """Put all that waits into the store; no file may be open meanwhile. What dead processes left follows by itself.

        Raises `SinkUnavailable` if the store takes nothing now, as `SpooledForNow` where another try would be in vain.
        """
        try:
            if self._spool is not None and self._spool.keys():
                spool = self._spool
                attempt(self._root, lambda store: upload_all(spool, store))
        except _LASTING as error:
            report_spooling(self._root, self.place, str(error))
            raise SpooledForNow(str(error)) from error
        except StoreError as error:
            raise SinkUnavailable(f"{error}; meanwhile records are kept in {self.place}") from error
        background.begin(self._root)

    def close(self) -> None:
        """Leave what could not be delivered to the next process."""
        if self._spool is not None:
            self._spool.remove_or_leave()

    def _claimed(self) -> SpoolDirectory:
        if self._spool is None:
            self._spool = claim(self._root, self._origin, part=self._part)
        return self._spool


def check_place(place: str) -> None:
    """Raise `ConfigurationError` if `open_store` would, without loading Google's client.

    That the extra for it is missing is not an error here: what is written there waits in the spool.
    """
    if not place.startswith("gs://"):
        open_store(place)
    elif not place.removeprefix("gs://").strip("/"):
        raise ConfigurationError(f"{place!r} does not name a bucket: write gs://bucket or gs://bucket/prefix")
