"""`on_full="wait"`: threads that record wait for room instead of dropping, where that is safe and for a bounded time.

Nobody waits in a thread of ours, whose work the others wait for; while a run or the process ends; nor in a signal's
handler that has interrupted this package, which may hold what the drain needs.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from mldiagnostics.pipeline.sink_worker import SinkWorker

ROOM_S = 30.0
"""How long a record waits for room before it is dropped and counted, and those behind it at once."""

STALL_S = 10.0
"""How long a sink may settle nothing before its records are no longer waited for."""

LANE_CAPACITY = 16_384
"""How many records may wait for a sink: few, so that the end of the run can write them in its time."""

_PAUSE_S = 0.001
_PACKAGE = __name__.partition(".")[0]
_OUR_THREADS = f"{_PACKAGE}-"
_ENDS = "mldiagnostics.run.exit_hooks"
_LOCKING = {
    "mldiagnostics.diagnostics",
    "mldiagnostics.metrics",
    "mldiagnostics.pipeline.buffer",
    "mldiagnostics.pipeline.drain",
    "mldiagnostics.pipeline.drops",
    "mldiagnostics.pipeline.recorder",
    "mldiagnostics.pipeline.sink_worker",
}
"""Modules whose functions must not be waited in."""


class Backpressure:
    """The waiting of the threads that record; `wake` has the drain empty the buffer at once."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._is_stuck = False
        self._is_over = False

    def wait(self, attempt: Callable[[], bool]) -> bool:
        """Make an attempt again and again until it succeeds; false if it should be given up."""
        if self._is_stuck or not _may_wait(sys._getframe(1)):  # noqa: SLF001 - a documented function
            return False
        self._wake()
        deadline = time.monotonic() + ROOM_S
        while not (self._is_over or self._is_stuck):
            time.sleep(_PAUSE_S)
            if attempt():
                return True
            if time.monotonic() > deadline:
                self._is_stuck = True
                warn_once("on-full", f"on_full='wait': there was no room for {ROOM_S:g} s; what is too much is dropped")
        return False

    def note_progress(self) -> None:
        """Have records wait again: the drain has taken some."""
        self._is_stuck = False

    def end(self) -> None:
        """Have nobody wait any more: the drain ends."""
        self._is_over = True


class LanePatience:
    """The waiting of the drain for sinks that are behind, each until it stalls."""

    def __init__(self) -> None:
        self._stalled: set[SinkWorker] = set()

    def wait(self, lane: SinkWorker, is_over: Callable[[], bool]) -> None:
        """Wait until the lane has room, has settled nothing for `STALL_S`, or it is over."""
        waiting, since = lane.waiting, time.monotonic()
        if waiting < LANE_CAPACITY:
            self._stalled.discard(lane)
        while waiting >= LANE_CAPACITY and lane not in self._stalled and not is_over():
            time.sleep(_PAUSE_S)
            if lane.waiting < waiting:
                waiting, since = lane.waiting, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                self._stalled.add(lane)
                warn_once(
                    f"on-full {lane.name}",
                    f"on_full='wait': sink {lane.name} has taken nothing for {STALL_S:g} s; until it does, records "
                    "that exceed its queue are dropped and counted",
                )


def _may_wait(frame: FrameType | None) -> bool:
    """Tell whether the thread that records at `frame` holds nothing that the drain could need."""
    if threading.current_thread().name.startswith(_OUR_THREADS):
        return False
    entering = True  # the frames of the call itself are the package's
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module == _ENDS or (not entering and module in _LOCKING):
            return False
        entering = entering and module.partition(".")[0] == _PACKAGE
        frame = frame.f_back
    return True
