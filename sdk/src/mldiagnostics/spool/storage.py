"""The storage of a run's profiles and run.json, or the spool while that fails."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import AlreadyStored, MissingExtraError, NoCredentials, StoreError
from mldiagnostics.pipeline.sink import SpoolFull
from mldiagnostics.spool import background
from mldiagnostics.spool.creation import SpoolUnavailable, create_directory
from mldiagnostics.spool.decisions import RETRY_CREDENTIALS_S, normalized
from mldiagnostics.store import open_store
from mldiagnostics.store.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.spool.directory import SpoolDirectory
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
        self._origin = origin
        self._lock = threading.RLock()
        self._spool: SpoolDirectory | None = None
        self._has_worked = False
        self._directories = 0

    def use_store(self, action: Callable[[Store], _Result]) -> _Result:
        """Call `action` with the store and return its result; see `use_store` below."""
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
            if self._spool is not None:
                self._spool.remove_or_release()
                self._spool = None

    def spool(self, key: str, data: bytes, problem: str) -> StoredFile:
        """Write the file to the spool, as `store` does when the storage fails.

        Raises `StoreError`, `SpoolUnavailable` or `SpoolFull` if the spool fails too.
        """
        with self._lock:
            if self._spool is None:
                self._directories += 1  # a released directory may still exist
                self._spool = create_directory(self.url, self._origin, part=f"files{self._directories}")
            if self._spool.bytes() + len(data) > self._spool.capacity_bytes:
                root = self._spool.path.parents[1]
                raise SpoolFull(f"{root}: the spool is full; upload its files with python -m mldiagnostics.upload")
            path = LocalStore(self._spool.files).put(key, data, replace=True).url
            report_spooling(self.url, self._spool.path, problem)
            return StoredFile(path, spooled=True)

    def _spool_file(self, key: str, data: bytes, problem: Exception) -> StoredFile:
        try:
            return self.spool(key, data, str(problem))
        except (StoreError, SpoolUnavailable) as error:  # the local disk is full too
            raise StoreError(f"{problem}; the spool failed too: {error}") from problem

    def _upload_rest(self, key: str) -> None:
        """Start the upload of waiting files, except older versions of this one."""
        with self._lock:
            if self._spool is not None:
                with contextlib.suppress(FileNotFoundError):
                    (self._spool.files / key).unlink()
                self.close()
            elif self._has_worked:
                return
            self._has_worked = True
        background.start_upload(self.url)


def use_store(url: str, action: Callable[[Store], _Result]) -> _Result:
    """Call `action` with the store at a path or URL and return its result.

    Raises as `action` and `open_store` do. While credentials are known to be missing it raises `NoCredentials` at once:
    a new search for them can take longer than the exit of a process may.
    """
    missing = _missing_credentials.get(url)
    if missing is not None and time.monotonic() < missing[1]:
        raise NoCredentials(missing[0])
    try:
        return action(open_store(url))
    except NoCredentials as error:
        _missing_credentials[url] = str(error), time.monotonic() + RETRY_CREDENTIALS_S
        raise


def report_spooling(destination: str, directory: Path, problem: str) -> None:
    """Warn once per destination that files wait, and how they are uploaded."""
    place, folder = normalized(destination), directory.parent
    warn_once(
        f"spool {place}",
        f"storage {place!r}: cannot store files now: {problem}; records, profiles and run.json are kept in {folder}; "
        "the next process on this machine that uses this storage uploads them, or run: "
        f"python -m mldiagnostics.upload {folder}",
    )


_missing_credentials: dict[str, tuple[str, float]] = {}
"""URL -> why its credentials are missing, and until when that counts (`time.monotonic`)."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_missing_credentials.clear)
