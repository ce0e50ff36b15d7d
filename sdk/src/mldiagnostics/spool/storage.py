"""The storage of a run, and the spool for what it does not take: profiles and run.json are in one of the two."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import AlreadyStored, MissingExtraError, NoCredentials, StoreError
from mldiagnostics.sinks.model import SpoolFull
from mldiagnostics.spool import background
from mldiagnostics.spool.decisions import RETRY_CREDENTIALS_S, normalized
from mldiagnostics.spool.directory import SpoolDirectory, SpoolUnavailable, claim
from mldiagnostics.store import open_store
from mldiagnostics.store.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.store import Store

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a file is: a path or URL in the storage, or the path of the file in the spool."""

    url: str
    spooled: bool = False


class RunStorage:
    """Puts files of one process into its run's storage, or into the spool; used by any thread."""

    def __init__(self, origin: Origin) -> None:
        self.url = origin.storage
        self._origin = origin
        self._lock = threading.RLock()
        self._spool: SpoolDirectory | None = None
        self._has_worked = False
        self._claims = 0

    def attempt(self, action: Callable[[Store], _Result]) -> _Result:
        """Do something with the store. Raises as the function `attempt` does."""
        return attempt(self.url, action)

    def keep(self, key: str, data: Callable[[], bytes], action: Callable[[Store], str]) -> Kept:
        """Have `action` store the file and return its URL; if the store cannot, spool `data()` under its key.

        Raises `StoreError` where neither takes it, and `SpoolFull` where the spool holds too much.
        """
        try:
            url = self.attempt(action)
        except AlreadyStored:
            raise
        except (StoreError, MissingExtraError) as error:
            return self._spooled(key, data(), error)
        self._works(key)
        return Kept(url)

    def upload_waiting(self, key: str) -> None:
        """Bring what earlier processes could not store under a key into the storage. Raises as `attempt` does."""
        background.upload_run_record(self.url, key)

    def close(self) -> None:
        """Leave what waits to the next process, or to the next run of this one."""
        with self._lock:
            if self._spool is not None:
                self._spool.remove_or_leave()
                self._spool = None

    def spool(self, key: str, data: bytes, problem: str) -> Kept:
        """Have the file wait in the spool, as `keep` does for a store that fails.

        Raises `StoreError`, `SpoolUnavailable` or `SpoolFull` if it cannot.
        """
        with self._lock:
            if self._spool is None:
                self._claims += 1  # one that was left before may still be there
                self._spool = claim(self.url, self._origin, part=f"files{self._claims}")
            if self._spool.bytes() + len(data) > self._spool.room:
                raise SpoolFull(f"the spool in {self._spool.path.parents[1]} is full")
            path = LocalStore(self._spool.files).put(key, data, replace=True).url
            report_spooling(self.url, self._spool.path, problem)
            return Kept(path, spooled=True)

    def _spooled(self, key: str, data: bytes, problem: Exception) -> Kept:
        try:
            return self.spool(key, data, str(problem))
        except (StoreError, SpoolUnavailable) as error:  # the local disk is full too
            raise StoreError(f"{problem}; and on the local disk: {error}") from problem

    def _works(self, key: str) -> None:
        """Have what waits uploaded, now that the storage takes files; the stored file is newer than a waiting one."""
        with self._lock:
            if self._spool is not None:
                with contextlib.suppress(FileNotFoundError):
                    (self._spool.files / key).unlink()
                self.close()
            elif self._has_worked:
                return
            self._has_worked = True
        background.begin(self.url)


def attempt(url: str, action: Callable[[Store], _Result]) -> _Result:
    """Do something with the store at a path or URL.

    Raises what `action` and `open_store` do; while credentials are known to be missing that at once, since the search
    for them can take longer than the end of a process has.
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
    """Warn, once for each destination, that files wait in the spool, and say how they get where they belong."""
    place, folder = normalized(destination), directory.parent
    warn_once(
        f"spool {place}",
        f"storage {place!r} takes no files now: {problem}; records, profiles and run.json are kept in {folder} and "
        "uploaded by the next process on this machine that uses this storage, or by: "
        f"python -m mldiagnostics.upload {folder}",
    )


_missing_credentials: dict[str, tuple[str, float]] = {}
"""Why the credentials for a URL are missing, and until when that counts, by `time.monotonic`."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_missing_credentials.clear)
