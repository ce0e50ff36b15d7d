"""The files of a log's directory, listed only when the directory changes."""

from __future__ import annotations

import os
import time
from itertools import pairwise

SUFFIX = ".jsonl"

_COARSE_NS = 2_000_000_000
"""A younger modification time is not used: the next change can have the same time."""

_TRUSTED_NS = 10_000_000_000
"""A listing is valid for this time; some file systems over object stores have no directory times."""


class LogFolder:
    """The sorted paths of the JSON lines files in one directory."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._paths: list[str] = []
        self._changed = -1
        self._listed = 0
        self.followed: frozenset[str] = frozenset()
        """Files whose process has started another file since."""

    def paths(self) -> list[str]:
        """Return the paths. Raises `OSError` as `os.listdir`."""
        changed = os.stat(self._path).st_mtime_ns  # noqa: PTH116 - strings are faster than paths
        now = time.monotonic_ns()
        if changed != self._changed or now - self._listed > _TRUSTED_NS:
            self._list()
            self._changed = changed if time.time_ns() - changed > _COARSE_NS else -1
            self._listed = now
        return self._paths

    def _list(self) -> None:
        names = sorted(name for name in os.listdir(self._path) if name.endswith(SUFFIX))  # noqa: PTH208 - as above
        self._paths = [os.path.join(self._path, name) for name in names]  # noqa: PTH118 - as above
        self.followed = frozenset(
            path for path, following in pairwise(self._paths) if path.rpartition("-")[0] == following.rpartition("-")[0]
        )
