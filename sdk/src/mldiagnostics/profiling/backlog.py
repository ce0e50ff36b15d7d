"""A queue of jobs for a slow store, run in order and limited by bytes."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Backlog:
    """Jobs of several threads, each run once, one after the other.

    It has no thread of its own: the first caller runs its job and those added meanwhile; other callers return at once.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.waiting_bytes = 0
        """Memory of the unfinished jobs."""
        self._limit_bytes = limit_bytes
        self._jobs: deque[tuple[int, Callable[[], object]]] = deque()
        self._is_running = False
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached, so that no new work should start."""
        return self.waiting_bytes >= self._limit_bytes

    def add(self, size: int, job: Callable[[], object]) -> None:
        """Run `job`, here or on the thread that runs others. It must not raise.

        `size` is the memory in bytes that it holds.
        """
        with self._lock:
            self._jobs.append((size, job))
            self.waiting_bytes += size
            if self._is_running:
                return
            self._is_running = True
        while True:
            with self._lock:
                if not self._jobs:
                    self._is_running = False
                    return
                size, job = self._jobs.popleft()
            job()
            with self._lock:
                self.waiting_bytes -= size
