"""The queue of the spool: it has all that waits on the local disk, with one bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.bucket_urls import BucketUrl
from mldiagnostics.errors import (
    MissingExtraError,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
)
from mldiagnostics.locations import is_bucket
from mldiagnostics.pipeline.sink import SinkUnavailable, SpooledForNow, SpoolFull
from mldiagnostics.spool import background
from mldiagnostics.spool.creation import create_directory
from mldiagnostics.spool.decisions import MAX_PROCESS_BYTES
from mldiagnostics.spool.destination import report_spooling, use_store
from mldiagnostics.spool.uploading import upload_all
from mldiagnostics.store import open_store
from mldiagnostics.store.local import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.spool.directory import Form, SpoolDirectory

_PERMANENT = (MissingExtraError, StoreForbidden, StoreNotFound, StoreFull)
"""Errors that a retry within seconds does not change."""


class SpoolQueue:
    """Files of one process that wait on the local disk for one destination.

    All that waits goes through here: records for a sink, files for a store, and the profiles and run.json of a run.
    Files that the process could not deliver are left to the next one.

    Args:
        destination: Path, URL or other name of the receiver, the same over restarts.
        origin: The process.
        form: The content: files for a store, or records for a sink.
        part: Distinguishes the queues of one process for one destination.
        max_bytes: Limit of the waiting bytes. The rest of the user's whole spool is a limit too.
    """

    def __init__(
        self,
        destination: str,
        origin: Origin,
        *,
        form: Form = "files",
        part: str = "",
        max_bytes: int = MAX_PROCESS_BYTES,
    ) -> None:
        self._destination = destination.rstrip("/") or destination
        self._origin, self._form, self._part = origin, form, part
        self._max_bytes = max_bytes
        self._spool: SpoolDirectory | None = None
        self._closed = 0

    @property
    def is_open(self) -> bool:
        """Whether it has a directory; the first use makes one."""
        return self._spool is not None

    @property
    def files(self) -> Path:
        """The local copy of the destination's root. Raises `SinkUnavailable` without one."""
        return self._directory().files

    @property
    def place(self) -> Path:
        """The spool directory, for messages. Raises as `files` does."""
        return self._directory().path

    def require_room(self, added: int = 0) -> None:
        """Raise `SpoolFull` if more than the limit would wait with `added` bytes."""
        spool = self._directory()
        waiting = spool.bytes()
        if waiting + added > min(self._max_bytes, spool.capacity_bytes):
            advice = (
                f"upload them with python -m mldiagnostics.upload {spool.path}"
                if self._form == "files"
                else "check that it can be reached"
            )
            size = f"{waiting >> 20} MiB wait already"
            raise SpoolFull(f"{spool.path}: {size}, and no more may wait for {self._destination}; {advice}")

    def put(self, key: str, content: bytes) -> str:
        """Write one file, also over an older version, and return its path.

        Raises `SpoolFull`, `SinkUnavailable` without a directory, or `StoreError` if the disk fails.
        """
        self.require_room(len(content))
        return LocalStore(self.files).put(key, content, replace=True).url

    def discard(self, key: str) -> None:
        """Delete a file if it waits."""
        (self.files / key).unlink(missing_ok=True)

    def deliver(self) -> None:
        """Upload all waiting files, then start the upload of ended processes' files.

        No file may be open meanwhile. Raises `SinkUnavailable` if the store fails, as `SpooledForNow` where a retry
        within seconds would fail too.
        """
        try:
            if self._spool is not None and self._spool.keys():
                spool = self._spool
                use_store(self._destination, lambda store: upload_all(spool, store))
        except _PERMANENT as error:
            report_spooling(self._destination, self.place, str(error))
            raise SpooledForNow(str(error)) from error
        except StoreError as error:
            raise SinkUnavailable(f"{error}; records are kept in {self.place} meanwhile") from error
        background.start_upload(self._destination)

    def remove(self) -> None:
        """Delete the files after all were delivered."""
        if self._spool is not None:
            self._spool.remove()
            self._spool = None

    def close(self) -> None:
        """Leave the waiting files to the next process, or to another part of this one."""
        if self._spool is not None:
            self._spool.remove_or_release()
            self._spool = None
            self._closed += 1  # a released directory may still exist

    def _directory(self) -> SpoolDirectory:
        if self._spool is None:
            part = f"{self._part}{self._closed or ''}"
            self._spool = create_directory(self._destination, self._origin, form=self._form, part=part)
        return self._spool


def check_location(location: str) -> None:
    """Raise `ConfigurationError` if `open_store` would.

    Does not import the client of a bucket. A missing extra is not an error here: records wait in
    the spool.
    """
    if not is_bucket(location):
        open_store(location)
    else:
        BucketUrl.parse(location)
