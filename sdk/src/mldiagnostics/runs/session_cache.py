"""Copies of sessions in bounded directories, for programs that read no bucket."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import is_trace, session_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mldiagnostics.store import Entry, Store


PARALLEL = 16
"""Traces that are copied at a time; one stream of a bucket is slower than the network."""

_CHUNK_BYTES = 1024 * 1024
_MAX_SEGMENT_BYTES = 255


class SessionTooLarge(MLDiagnosticsError):
    """A session is larger than the whole cache."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session in a store.

    Args:
        name: Its name for people: the path of the run, and the session.
        traces: Size of each trace by its key.
        modified: Time of the newest trace, in Unix seconds.
        store: The store of the traces.
    """

    name: str
    traces: Mapping[str, int]
    modified: float
    store: Store = field(compare=False)

    @classmethod
    def of(cls, name: str, entries: Sequence[Entry], store: Store) -> StoredSession:
        """Return the session whose traces are these entries of a store, at least one."""
        modified = max(entry.modified.timestamp() for entry in entries)
        return cls(name, {entry.key: entry.bytes for entry in entries}, modified, store)

    @property
    def bytes(self) -> int:
        """The size of the traces."""
        return sum(self.traces.values())


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A session in the cache.

    `bytes` has the files that others wrote beside the traces too; `used` is the time of the last request.
    """

    directory: Path
    bytes: int
    used: float


def stored_session(store: Store, session: str) -> StoredSession | None:
    """Return a session of a run; None without traces. Raises `StoreError`.

    Args:
        store: The store at the directory of the run.
        session: Its name.
    """
    listed = store.list(session_prefix(session))
    entries = [entry for entry in listed if is_trace(entry.key) and has_plain_segments(entry.key)]
    return StoredSession.of(session, entries, store) if entries else None


def has_plain_segments(path: str) -> bool:
    """Return whether a key of a bucket is a path below a directory."""
    return all(
        segment not in {"", ".", ".."} and "\0" not in segment and len(segment.encode()) <= _MAX_SEGMENT_BYTES
        for segment in path.split("/")
    )


def evictions(wanted_bytes: int, others: Iterable[CachedSession], limit: int) -> list[Path]:
    """Return the directories to clear before a session is fetched; pure.

    Those with the oldest use are first.

    Args:
        wanted_bytes: Size of the session, at most the limit.
        others: The other sessions in the cache.
        limit: Most bytes of the cache.
    """
    oldest_first = sorted(others, key=lambda each: each.used)
    excess = wanted_bytes + sum(each.bytes for each in oldest_first) - limit
    evicted = []
    for each in oldest_first:
        if excess <= 0:
            break
        evicted.append(each.directory)
        excess -= each.bytes
    return evicted


class SessionCache:
    """Copies sessions, and deletes those with the oldest use to keep the limit.

    A session appears in its directory as a whole. Files that others write there later count when the next one is added.

    Args:
        partial: A directory on the file system of the sessions; they are there while they are copied.
        limit: Most bytes of all sessions together.
        remedy: Advice for a session that is larger than the limit.
    """

    def __init__(self, partial: Path, limit: int, *, remedy: str) -> None:
        self._partial, self._limit, self._remedy = partial, limit, remedy
        self._changing = threading.Lock()
        self._cached: dict[Path, StoredSession] = {}
        self._used: dict[Path, float] = {}

    def ensure(self, session: StoredSession, directory: Path) -> list[Path]:
        """Copy a session to a directory, unless it is there as it is in its store.

        Returns:
            The directories that were cleared for it.

        Raises:
            SessionTooLarge: It is larger than the cache.
            StoreError: It cannot be read.
        """
        with self._changing:
            cleared: list[Path] = []
            if self._cached.get(directory) != session:  # or a host has added its trace
                if session.bytes > self._limit:
                    problem = f"session {session.name}: has {session.bytes} bytes, the cache {self._limit}"
                    raise SessionTooLarge(f"{problem}; {self._remedy}")
                others = [
                    CachedSession(each, _size(each), self._used[each]) for each in self._cached if each != directory
                ]
                cleared = evictions(session.bytes, others, self._limit)
                for each in cleared:
                    self._clear(each)
                self._copy(session, directory)
            self._used[directory] = time.monotonic()
            return cleared

    def clear(self, directory: Path) -> None:
        """Delete the session in a directory."""
        with self._changing:
            self._clear(directory)

    def _copy(self, session: StoredSession, directory: Path) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir(parents=True)

        def copy(key: str) -> None:
            with session.store.open(key) as source, (self._partial / key.rpartition("/")[2]).open("wb") as copied:
                shutil.copyfileobj(source, copied, _CHUNK_BYTES)

        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(copy, session.traces))
        self._clear(directory)  # an empty directory, or an earlier copy
        directory.parent.mkdir(parents=True, exist_ok=True)
        self._partial.rename(directory)
        self._cached[directory] = session

    def _clear(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        self._cached.pop(directory, None)


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        with suppress(OSError):  # others replace their files
            total += path.stat().st_size
    return total
