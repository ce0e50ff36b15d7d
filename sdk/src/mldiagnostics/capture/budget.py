"""A bound on the bytes of all traces in memory, from reading to storing."""

import asyncio
from collections import deque

from mldiagnostics.capture.deadline import Deadline

DEFAULT_BUDGET_BYTES = 64 * 1024 * 1024

_LEAST_RESERVATION_BYTES = 4 * 1024 * 1024
"""Bounds the number of parallel reads if large traces follow small ones."""


class Reservation:
    """The share of the budget that one trace uses."""

    def __init__(self, size: int) -> None:
        self.bytes = size


class ByteBudget:
    """A memory budget for all captures of a process, first come, first served.

    The size of a trace is known only after it is read. So each reader reserves an estimate from recent traces and
    corrects it with `settle`. The first estimate is the whole budget. A trace larger than the budget is read alone.
    """

    def __init__(self, total_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._total = total_bytes
        self._free = total_bytes
        self._expected = total_bytes
        self._has_history = False
        self._waiting: deque[asyncio.Future[Reservation]] = deque()

    async def take(self, deadline: Deadline) -> Reservation:
        """Reserve memory for one trace; wait for it until the deadline.

        Raises:
            asyncio.TimeoutError: no memory was free by the deadline.
        """
        if not self._waiting and self._fits():
            return self._reserve()
        waiter: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=deadline.left_s())
        except asyncio.CancelledError:
            if not waiter.cancel():
                self.give_back(waiter.result())
            raise
        if waiter.cancel():
            raise asyncio.TimeoutError
        return waiter.result()

    def give_back(self, reservation: Reservation) -> None:
        """Release the reservation: the trace is stored or dropped."""
        self._free += reservation.bytes
        self._admit()

    def settle(self, reservation: Reservation, size: int) -> None:
        """Replace the estimate by the real size of the trace in bytes."""
        self._free += reservation.bytes - size
        reservation.bytes = size
        estimate = max(2 * size, int(0.9 * self._expected) if self._has_history else 0)
        self._has_history = True
        self._expected = min(max(estimate, _LEAST_RESERVATION_BYTES), self._total)
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (self._waiting[0].done() or self._fits()):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(self._reserve())

    def _fits(self) -> bool:
        return self._free >= self._expected

    def _reserve(self) -> Reservation:
        self._free -= self._expected
        return Reservation(self._expected)
