"""Short turns for background work: it lets go of the interpreter's lock before a training step has to ask for it."""

from __future__ import annotations

from time import perf_counter, sleep

TURN_S = 0.0005
"""How long to work on at a stretch; asking for the lock costs a step up to 5 ms (`sys.getswitchinterval`)."""

_REST_S = 0.0001


class GilYielder:
    """Call it between small pieces of work (well below 0.5 ms each): it rests when a turn is over."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a turn, after the lock was free anyway."""
        self._end = perf_counter() + TURN_S

    def __call__(self) -> None:
        """Rest a moment if the turn is over."""
        if perf_counter() >= self._end:
            sleep(_REST_S)
            self.begin()
