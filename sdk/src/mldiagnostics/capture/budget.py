"""A bound on the bytes of all traces that are in memory at once, from the first byte read to the last one stored."""

import asyncio
from collections import deque

from mldiagnostics.capture.deadline import Deadline

DEFAULT_BUDGET_BYTES = 64 * 1024 * 1024

_LEAST_RESERVATION_BYTES = 4 * 1024 * 1024
"""Bounds how many are read at once, should big traces follow small ones."""


class Reservation:
    """The share of the budget that one trace occupies."""

    def __init__(self, size: int) -> None:
        self.bytes = size


class ByteBudget:
    """Shared by everything in one process that reads traces; first come, first served.

    A message tells its size only once it is read, so each reader reserves what recent traces lead to expect (at first:
    everything, so one is read alone) and corrects that by `settle`. A trace larger than the whole budget is read alone.
    """

    def __init__(self, total_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._total = total_bytes
        self._free = total_bytes
        self._expected = total_bytes
        self._experienced = False
        self._waiting: deque[asyncio.Future[Reservation]] = deque()

    async def take(self, deadline: Deadline) -> Reservation:
        """Wait for room for one trace and occupy it until `give_back`. Raises `asyncio.TimeoutError`."""
        if not self._waiting and self._fits():
            return self._reserve()
        turn: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait({turn}, timeout=deadline.left_s())
        except asyncio.CancelledError:
            if not turn.cancel():
                self.give_back(turn.result())
            raise
        if turn.cancel():
            raise asyncio.TimeoutError
        return turn.result()

    def give_back(self, held: Reservation) -> None:
        """Let others have the room: the trace is stored, or given up."""
        self._free += held.bytes
        self._admit()

    def settle(self, held: Reservation, size: int) -> None:
        """Replace the guess by the trace's real size, in bytes."""
        self._free += held.bytes - size
        held.bytes = size
        guess = max(2 * size, int(0.9 * self._expected) if self._experienced else 0)
        self._experienced = True
        self._expected = min(max(guess, _LEAST_RESERVATION_BYTES), self._total)
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (self._waiting[0].done() or self._fits()):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(self._reserve())

    def _fits(self) -> bool:
        return self._free >= self._expected

    def _reserve(self) -> Reservation:
        self._free -= self._expected
        return Reservation(self._expected)
