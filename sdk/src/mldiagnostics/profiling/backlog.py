"""Work that waits in memory for a slow place, done in order; bounded by the bytes that it holds, not by its number."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Backlog:
    """Jobs that threads leave here, each done once, one after the other.

    It has no thread: the first one to come does its own job and those that arrive meanwhile; the others go on at once.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.waiting_bytes = 0
        """What the jobs hold that are not done yet."""
        self._limit_bytes = limit_bytes
        self._jobs: deque[tuple[int, Callable[[], object]]] = deque()
        self._works = False
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be begun that will need room here."""
        return self.waiting_bytes >= self._limit_bytes

    def add(self, size: int, job: Callable[[], object]) -> None:
        """Have `job`, which holds `size` bytes and raises nothing, done here or by the thread that is at it."""
        with self._lock:
            self._jobs.append((size, job))
            self.waiting_bytes += size
            if self._works:
                return
            self._works = True
        while True:
            with self._lock:
                if not self._jobs:
                    self._works = False
                    return
                size, job = self._jobs.popleft()
            job()
            with self._lock:
                self.waiting_bytes -= size
