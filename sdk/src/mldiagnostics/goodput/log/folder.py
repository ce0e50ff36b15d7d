"""The files of a log's directory, listed only when the directory changes."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.store.shared import Reader

SUFFIX = ".jsonl"

_COARSE_NS = 2_000_000_000
"""A younger modification time is not used: the next change can have the same time."""

_TRUSTED_NS = 10_000_000_000
"""A listing is valid for this time; some file systems over object stores have no directory times."""


class LogFolder:
    """The sorted paths of the JSON lines files in one directory."""

    def __init__(self, path: str, reader: Reader) -> None:
        self._path = path
        self._reader = reader
        self._paths: list[str] = []
        self._changed = -1
        self._listed = 0
        self.followed: frozenset[str] = frozenset()
        """Files whose process has started another file since."""

    def paths(self) -> list[str]:
        """Return the paths. Raises `OSError` as `os.listdir`."""
        changed = self._reader.status(self._path).st_mtime_ns
        now = time.monotonic_ns()
        if changed != self._changed or now - self._listed > _TRUSTED_NS:
            self._list()
            self._changed = changed if time.time_ns() - changed > _COARSE_NS else -1
            self._listed = now
        return self._paths

    def forget(self) -> None:
        """List the directory again at the next call: a file of the last listing is gone."""
        self._changed = -1

    def _list(self) -> None:
        with self._reader.scan(self._path) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIX))
        self._paths = [os.path.join(self._path, name) for name in names]  # noqa: PTH118 - strings are faster than paths
        self.followed = frozenset(
            path for path, following in pairwise(self._paths) if path.rpartition("-")[0] == following.rpartition("-")[0]
        )
