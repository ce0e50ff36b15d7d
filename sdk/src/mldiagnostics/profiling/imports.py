"""A thread that waits until the program has imported its framework."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.25
"""Interval of the checks; one takes microseconds."""


class ImportWatch:
    """Calls `check` at an interval, on a thread of its own, until it returns true."""

    def __init__(self, check: Callable[[], bool]) -> None:
        self._check = check
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mldiagnostics-imports", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the checks; returns at once."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            if self._check():
                return
