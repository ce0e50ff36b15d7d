"""A thread that waits until the program has imported the framework that it uses."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.25
"""How often it looks; a look costs microseconds."""


class ImportWatch:
    """Calls `attempt` now and then, on a thread of its own, until it returns true."""

    def __init__(self, attempt: Callable[[], bool]) -> None:
        self._attempt = attempt
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mldiagnostics-imports", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Have no further attempt begin; returns at once."""
        self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            if self._attempt():
                return
