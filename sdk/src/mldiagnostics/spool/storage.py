"""The storage of a run's profiles and run.json, or the spool while that fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mldiagnostics.errors import AlreadyStored, MissingExtraError, StoreError
from mldiagnostics.spool import background
from mldiagnostics.spool.creation import SpoolUnavailable
from mldiagnostics.spool.decisions import MAX_SPOOL_BYTES
from mldiagnostics.spool.destination import report_spooling, use_store
from mldiagnostics.spool.queue import SpoolQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.store import Store

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The location of a file: a path or URL in the storage, or its path in the spool."""

    url: str
    spooled: bool = False


class RunStorage:
    """Stores one process's files in its run's storage or in the spool; thread-safe."""

    def __init__(self, origin: Origin) -> None:
        self.url = origin.storage
        self._lock = threading.RLock()
        self._queue = SpoolQueue(origin.storage, origin, part="files", max_bytes=MAX_SPOOL_BYTES)
        self._has_worked = False

    def use_store(self, action: Callable[[Store], _Result]) -> _Result:
        """Call `action` with the store and return its result; see `destination.use_store`."""
        return use_store(self.url, action)

    def store(self, key: str, data: Callable[[], bytes], action: Callable[[Store], str]) -> StoredFile:
        """Store a file by `action`, which returns its URL; else spool `data()`.

        Raises `StoreError` if both fail, `SpoolFull` if the spool is full, and `AlreadyStored` as the store does.
        """
        try:
            url = self.use_store(action)
        except AlreadyStored:
            raise
        except (StoreError, MissingExtraError) as error:
            return self._spool_file(key, data(), error)
        self._upload_rest(key)
        return StoredFile(url)

    def upload_waiting(self, key: str) -> None:
        """Upload the files that earlier processes spooled under a key.

        Raises as `use_store` does.
        """
        background.upload_run_record(self.url, key)

    def close(self) -> None:
        """Leave waiting files to the next process, or to the next run of this one."""
        with self._lock:
            self._queue.close()

    def spool(self, key: str, data: bytes, problem: str) -> StoredFile:
        """Write the file to the spool, as `store` does when the storage fails.

        Raises `StoreError`, `SpoolUnavailable` or `SpoolFull` if the spool fails too.
        """
        with self._lock:
            path = self._queue.put(key, data)
            report_spooling(self.url, self._queue.place, problem)
            return StoredFile(path, spooled=True)

    def _spool_file(self, key: str, data: bytes, problem: Exception) -> StoredFile:
        try:
            return self.spool(key, data, str(problem))
        except (StoreError, SpoolUnavailable) as error:  # the local disk is full too
            raise StoreError(f"{problem}; the spool failed too: {error}") from problem

    def _upload_rest(self, key: str) -> None:
        """Start the upload of waiting files, except older versions of this one."""
        with self._lock:
            if self._queue.is_open:
                self._queue.discard(key)
                self._queue.close()
            elif self._has_worked:
                return
            self._has_worked = True
        background.start_upload(self.url)
