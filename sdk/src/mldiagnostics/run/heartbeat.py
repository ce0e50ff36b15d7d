"""The thread of a run that records heartbeats and keeps run.json up to date."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 1.0
"""Seconds between writes of run.json: buckets accept about one a second for one object."""

_Request: TypeAlias = "tuple[SimpleQueue[None], bool]"
"""Queue for the acknowledgement, and whether to write before it."""


class HeartbeatThread:
    """Calls `beat` every `interval_s`, and `write` after each beat and change.

    An exception in either is reported once, and the thread continues. All methods may be called by a signal handler:
    a `SimpleQueue` is reentrant, an `Event` is not.
    """

    def __init__(
        self,
        *,
        interval_s: float,
        beat: Callable[[], None],
        write: Callable[[], None],
    ) -> None:
        self._interval_s = interval_s
        self._beat = beat
        self._write = write
        self._inbox: SimpleQueue[_Request | None] = SimpleQueue()
        self._woken = False
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="mldiagnostics-run", daemon=True)

    def start(self) -> None:
        """Start the thread, which writes at once."""
        try:
            self._thread.start()
        except RuntimeError as error:  # no more threads for this process
            warn_once("run-reporter", f"the run has no heartbeat and no run.json: {error}")

    def wake(self) -> None:
        """Schedule a write after a change."""
        if not self._woken:  # a thousand changes are one message
            self._woken = True
            self._inbox.put(None)

    def sync(self, timeout_s: float, *, write: bool = True) -> bool:
        """Beat and write now; return whether that was done within `timeout_s`."""
        if not self._thread.is_alive():
            return False
        done: SimpleQueue[None] = SimpleQueue()
        self._inbox.put((done, write))
        try:
            done.get(timeout=timeout_s)
        except Empty:
            return False
        return True

    def finish(self, timeout_s: float) -> bool:
        """Write a last time and stop; return whether that was done within `timeout_s`."""
        self._ending = True
        self._inbox.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        self._guarded(self._write)
        next_beat, next_write, changed = time.monotonic(), time.monotonic() + PAUSE_S, True
        while not self._ending:
            request = self._next_message(min(next_beat, next_write) if changed else next_beat)
            changed = changed or self._woken
            if request is not None or time.monotonic() >= next_beat:
                next_beat = time.monotonic() + self._interval_s
                changed = True
                self._guarded(self._beat)
            if (request is not None and request[1]) or (changed and time.monotonic() >= next_write):
                changed = self._woken = False
                self._guarded(self._write)
                next_write = time.monotonic() + PAUSE_S
            if request is not None:
                request[0].put(None)
        self._guarded(self._write)

    def _next_message(self, until: float) -> _Request | None:
        try:
            return self._inbox.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None

    @staticmethod
    def _guarded(action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the run continues
            warn_once("run-reporter", f"a heartbeat or a write of run.json failed and is skipped: {error!r}")
