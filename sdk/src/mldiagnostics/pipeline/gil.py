"""Release the interpreter's lock often in background work, for training steps."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

TURN_S = 0.0005
"""Seconds of work between pauses; a step may wait 5 ms for the lock (`sys.getswitchinterval`)."""

_REST_S = 0.0001

_PIECE = 8
"""Number of records that are encoded between two looks at the time."""


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

    def results(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
        """Return the results of a function that takes some microseconds for an item."""
        results: list[_Result] = []
        for start in range(0, len(items), _PIECE):
            results += map(function, items[start : start + _PIECE])
            self()
        return results
