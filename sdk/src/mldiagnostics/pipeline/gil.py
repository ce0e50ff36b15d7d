"""Release the interpreter's lock often in background work, for training steps."""

from __future__ import annotations

from time import perf_counter, sleep

TURN_S = 0.0005
"""Seconds of work between pauses; a step may wait 5 ms for the lock (`sys.getswitchinterval`)."""

_REST_S = 0.0001


class GilYielder:
    """Pauses the thread when it has worked for `TURN_S`.

    Called between pieces of work far below 0.5 ms.
    """

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Restart the time, after a wait that released the lock."""
        self._end = perf_counter() + TURN_S

    def __call__(self) -> None:
        """Pause if the time is over."""
        if perf_counter() >= self._end:
            sleep(_REST_S)
            self.restart()
