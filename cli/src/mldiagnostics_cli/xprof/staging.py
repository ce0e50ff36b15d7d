"""A bounded copy of the sessions of a bucket, for XProf.

XProf reads neither `s3://` nor `az://`.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from mldiagnostics.layout import PROFILE_DIR, RECORDS_DIR, REPORTED_DIR
from mldiagnostics.runs.session_cache import PARALLEL, SessionCache, StoredSession, has_plain_segments

from mldiagnostics_cli.xprof.stage_plan import directory_of, newest_that_fits, sessions_of

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store


DEPTH = 2
"""Sessions of a run, of the root of runs, and of a root with namespaces."""
LIST_AGE_S = 5.0
_PLUGINS = PROFILE_DIR.partition("/")[0]
_WITHOUT_RUNS = {_PLUGINS, RECORDS_DIR, REPORTED_DIR}


class SessionStage:
    """The sessions of a store in a directory.

    XProf lists a session if its directory exists, so each one has an empty directory until it is fetched: the newest
    one at the start, and another one when a request names it.

    Args:
        store: The bucket, at the log directory.
        directory: An empty directory, which XProf gets as its log directory.
        partial: A directory on the same file system; sessions are there while they are fetched.
        limit: Most bytes of traces and of the files that XProf makes of them, when a session is added.
    """

    def __init__(self, store: Store, directory: Path, partial: Path, limit: int) -> None:
        self._store, self._directory, self._limit = store, directory, limit
        self._cache = SessionCache(partial, limit, remedy="make another server with --cache-size")
        self._listing = threading.Lock()
        self._sessions: dict[str, StoredSession] = {}
        self._listed = float("-inf")

    def refresh(self) -> None:
        """List the bucket, and make a directory for each session. Raises `StoreError`."""
        with self._listing:
            if time.monotonic() - self._listed < LIST_AGE_S:
                return
            known, self._sessions = self._sessions, {each.name: each for each in self._remote_sessions()}
            self._listed = time.monotonic()
            for name in self._sessions:
                self._directory_for(name).mkdir(parents=True, exist_ok=True)
            if gone := known.keys() - self._sessions.keys():
                for name in gone:
                    self._cache.clear(self._directory_for(name))

    def fetch_newest(self) -> None:
        """Fetch the newest session that fits into the cache. Raises `StoreError`."""
        if newest := newest_that_fits(self._sessions.values(), self._limit):
            self._ensure(newest.name)

    def prepare(self, target: str) -> None:
        """List the bucket or fetch a session for a request of XProf's page.

        Args:
            target: Path and query of the request.

        Raises:
            StoreError: The bucket cannot be read.
            SessionTooLarge: The session is larger than the cache.
        """
        parts = urlsplit(target)
        if parts.path.endswith("/runs"):
            self.refresh()
        for name in parse_qs(parts.query).get("run", []):
            self._ensure(name)

    def _ensure(self, name: str) -> None:
        session = self._sessions.get(name) or self._new_session(name)
        if session is None:
            return  # XProf says so
        for each in self._cache.ensure(session, self._directory_for(name)):
            each.mkdir(parents=True, exist_ok=True)

    def _directory_for(self, name: str) -> Path:
        return self._directory / directory_of(name)

    def _remote_sessions(self) -> list[StoredSession]:
        level, runs = [""], list[str]()
        with ThreadPoolExecutor(PARALLEL) as pool:
            for _ in range(DEPTH + 1):
                folders = list(pool.map(lambda directory: list(self._store.folders(directory)), level))
                below: list[str] = []
                for directory, names in zip(level, folders, strict=True):
                    if _PLUGINS in names:
                        runs.append(directory)
                    start = f"{directory}/" if directory else ""
                    below += [start + name for name in names if name not in _WITHOUT_RUNS and has_plain_segments(name)]
                level = below
            return [session for sessions in pool.map(self._sessions_of, runs) for session in sessions]

    def _new_session(self, name: str) -> StoredSession | None:
        """Return a session that was captured after the bucket was listed."""
        if not has_plain_segments(name):
            return None
        sessions = {each.name: each for each in self._sessions_of(name.rpartition("/")[0])}
        return sessions.get(name)

    def _sessions_of(self, run: str) -> list[StoredSession]:
        return sessions_of(run, self._store.list(f"{run}/{PROFILE_DIR}" if run else PROFILE_DIR), self._store)
