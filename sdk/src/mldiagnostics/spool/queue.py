"""Upload queue: closed files of one process, kept until their store has them."""

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
from mldiagnostics.pipeline.sink import SinkUnavailable, SpooledForNow, SpoolFull
from mldiagnostics.spool import background
from mldiagnostics.spool.creation import create_directory
from mldiagnostics.spool.decisions import MAX_PROCESS_BYTES
from mldiagnostics.spool.storage import report_spooling, use_store
from mldiagnostics.spool.uploading import upload_all
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.spool.directory import SpoolDirectory

_PERMANENT = (MissingExtraError, StoreForbidden, StoreNotFound, StoreFull)
"""Errors that a retry within seconds does not change."""


class UploadQueue:
    """Closed files of one process, each at the path of its key in the store.

    Files that the process could not upload are left to the next one.
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
        """The local copy of the store's root. Raises `SinkUnavailable` without one."""
        return self._directory().files

    @property
    def place(self) -> Path:
        """The spool directory, for messages. Raises as `files` does."""
        return self._directory().path

    def require_room(self) -> None:
        """Raise `SpoolFull` if the limit of waiting bytes is reached."""
        spool = self._directory()
        if spool.bytes() > min(self._max_waiting_bytes, spool.capacity_bytes):
            raise SpoolFull(
                f"{spool.path}: {spool.bytes() >> 20} MiB wait for {self._root} already; upload them with "
                f"python -m mldiagnostics.upload {spool.path}"
            )

    def deliver(self) -> None:
        """Upload all waiting files, then start the upload of ended processes' files.

        No file may be open meanwhile. Raises `SinkUnavailable` if the store fails, as `SpooledForNow` where a retry
        within seconds would fail too.
        """
        try:
            if self._spool is not None and self._spool.keys():
                spool = self._spool
                use_store(self._root, lambda store: upload_all(spool, store))
        except _PERMANENT as error:
            report_spooling(self._root, self.place, str(error))
            raise SpooledForNow(str(error)) from error
        except StoreError as error:
            raise SinkUnavailable(f"{error}; records are kept in {self.place} meanwhile") from error
        background.start_upload(self._root)

    def close(self) -> None:
        """Leave the files that were not uploaded to the next process."""
        if self._spool is not None:
            self._spool.remove_or_release()

    def _directory(self) -> SpoolDirectory:
        if self._spool is None:
            self._spool = create_directory(self._root, self._origin, part=self._part)
        return self._spool


def check_place(place: str) -> None:
    """Raise `ConfigurationError` if `open_store` would.

    Does not import Google's client. A missing extra is not an error here: records for such a store wait in the spool.
    """
    if not place.startswith("gs://"):
        open_store(place)
    elif not place.removeprefix("gs://").strip("/"):
        raise ConfigurationError(f"{place!r}: the bucket's name is missing; write gs://bucket or gs://bucket/prefix")
