"""Let recording threads wait for room with `on_full="wait"`, where that is safe.

Threads of this package never wait, as others wait for their work; the buffer has additional room for them. Nor does a
thread wait while a run or the process ends, or in a signal handler that interrupted this package and may hold a lock
that the drain needs.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


ROOM_S = 30.0
"""Longest wait of a record for room; it is dropped and counted then, and the next ones at once."""

OWN_ROOM = 16_384
"""Additional room for records of this package's own threads, a few each second."""

PAUSE_S = 0.001
"""Pause between two looks for room."""

_PACKAGE = __name__.partition(".")[0]
_OUR_THREADS = f"{_PACKAGE}-"
_EXIT_HOOKS = "mldiagnostics.run.exit_hooks"
_LOCKING = {
    "mldiagnostics.diagnostics",
    "mldiagnostics.metrics",
    "mldiagnostics.pipeline.buffer",
    "mldiagnostics.pipeline.drain",
    "mldiagnostics.pipeline.drops",
    "mldiagnostics.pipeline.recorder",
    "mldiagnostics.pipeline.sink_worker",
}
"""Modules whose functions hold locks, so that a thread in them must not wait."""


_Entry = TypeVar("_Entry")


class Backpressure:
    """Lets recording threads wait; `wake` makes the drain empty the buffer at once."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._has_timed_out = False
        self._is_stopped = False

    def wait(self, take: Callable[[_Entry, int], bool], entry: _Entry) -> bool:
        """Repeat `take` until it succeeds; return whether it did.

        Threads of this package use the room that is left for them.
        """
        if _is_own_thread():
            return take(entry, OWN_ROOM)
        if self._has_timed_out or not _may_wait(sys._getframe(1)):  # noqa: SLF001 - a documented function
            return False
        self._wake()
        deadline = time.monotonic() + ROOM_S
        while not (self._is_stopped or self._has_timed_out):
            time.sleep(PAUSE_S)
            if take(entry, 0):
                return True
            if time.monotonic() > deadline:
                self._has_timed_out = True
                warn_once("on-full", f"on_full='wait': the buffer was full for {ROOM_S:g} s; records are dropped")
        return False

    def note_progress(self) -> None:
        """Let records wait again, after the drain has taken some."""
        self._has_timed_out = False

    def stop(self) -> None:
        """Stop all waiting, as the drain stops."""
        self._is_stopped = True


def _is_own_thread() -> bool:
    return threading.current_thread().name.startswith(_OUR_THREADS)


def _may_wait(frame: FrameType | None) -> bool:
    """Return whether the thread at `frame` holds no lock that the drain could need."""
    entering = True  # the innermost frames are those of the call itself
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module == _EXIT_HOOKS or (not entering and module in _LOCKING):
            return False
        entering = entering and module.partition(".")[0] == _PACKAGE
        frame = frame.f_back
    return True
