"""A bound on the bytes of all traces in memory, shared fairly by tenants."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from mldiagnostics.capture.deadline import Deadline
from mldiagnostics.capture.model import MAX_TRACE_BYTES

_MEBIBYTE = 1024 * 1024

SMALL_TRACES_BYTES = 64 * _MEBIBYTE
"""Memory for all small traces together, beside that for the largest trace."""

_SMALL_BYTES = SMALL_TRACES_BYTES // 4
_SHARE_BYTES = SMALL_TRACES_BYTES - _SMALL_BYTES
"""One small trace of another tenant always fits beside the share of a tenant."""

_LEAST_BYTES = 256 * 1024
"""Counted for a smaller trace: the need of its connection and its write."""

_PROCESS_BYTES = 304 * _MEBIBYTE
"""Everything else in an operator: 140 MiB with 10 000 pods, and the copies of uploads.

A trace costs its size, measured from 16 to 250 MiB. To a bucket, 16 threads hold a copy of one part (4 MiB) each;
a small trace is one request, whose copies cost up to 2.5 times its size.
"""


def memory_limit(largest_bytes: int) -> int:
    """Return the memory limit of a process, 25 % above its need with such traces."""
    return (largest_bytes + SMALL_TRACES_BYTES + _PROCESS_BYTES) * 5 // 4


@dataclass(eq=False, slots=True)
class Reservation:
    """Memory reserved for one trace until `release`."""

    lane: "_Lane"
    tenant: str
    bytes: int

    def release(self) -> None:
        """Return the memory to the budget; repeated calls do nothing."""
        self.lane.release(self)


class ByteBudget:
    """The memory for the traces of all captures of a process.

    A trace gets the memory of its whole size before it is read, or waits. Small traces never wait for large ones: each
    kind has its lane. In a lane, the tenant with the least memory is next.

    Args:
        largest_bytes: size of the largest trace, which is also the memory for all traces that are not small.
    """

    def __init__(self, largest_bytes: int = MAX_TRACE_BYTES) -> None:
        self.largest_bytes = largest_bytes
        self._small = _Lane(SMALL_TRACES_BYTES, share=_SHARE_BYTES)
        self._large = _Lane(largest_bytes, share=largest_bytes)

    @property
    def total_bytes(self) -> int:
        """The most bytes that all traces together use."""
        return self._small.total + self._large.total

    @property
    def used_bytes(self) -> int:
        """Bytes that are reserved now."""
        return self._small.used + self._large.used

    async def reserve(self, size: int, tenant: str, deadline: Deadline) -> Reservation:
        """Reserve memory for one trace; wait for it until the deadline.

        Raises:
            asyncio.TimeoutError: not enough memory was free by the deadline.
        """
        lane = self._small if size <= _SMALL_BYTES else self._large
        return await lane.reserve(Reservation(lane, tenant, max(size, _LEAST_BYTES)), deadline)


@dataclass(eq=False, slots=True)
class _Waiter:
    reservation: Reservation
    admitted: "asyncio.Future[None]"


@dataclass(eq=False, slots=True)
class _Tenant:
    used: int = 0
    last_turn: int = 0
    waiting: deque[_Waiter] = field(default_factory=deque)


class _Lane:
    """Memory of a fixed size; a tenant uses at most its share, or one trace."""

    def __init__(self, total: int, *, share: int) -> None:
        self.total = total
        self.used = 0
        self._share = share
        self._turns = 0
        self._tenants: dict[str, _Tenant] = {}

    async def reserve(self, reservation: Reservation, deadline: Deadline) -> Reservation:
        waiter = _Waiter(reservation, asyncio.get_running_loop().create_future())
        tenant = self._tenants.setdefault(reservation.tenant, _Tenant())
        tenant.waiting.append(waiter)
        self._admit()
        if not waiter.admitted.done():
            await self._wait(waiter, deadline)
        return reservation

    async def _wait(self, waiter: _Waiter, deadline: Deadline) -> None:
        try:
            await asyncio.wait({waiter.admitted}, timeout=deadline.left_s())
        except asyncio.CancelledError:
            self._give_up(waiter)
            raise
        if not waiter.admitted.done():
            self._give_up(waiter)
            raise asyncio.TimeoutError

    def release(self, reservation: Reservation) -> None:
        if not reservation.bytes:
            return
        self.used -= reservation.bytes
        self._tenants[reservation.tenant].used -= reservation.bytes
        reservation.bytes = 0
        self._forget_idle(reservation.tenant)
        self._admit()

    def _give_up(self, waiter: _Waiter) -> None:
        if waiter.admitted.done():
            self.release(waiter.reservation)
            return
        self._tenants[waiter.reservation.tenant].waiting.remove(waiter)
        self._forget_idle(waiter.reservation.tenant)
        self._admit()

    def _admit(self) -> None:
        """Admit the next waiters while they fit; nobody overtakes one that does not."""
        while (tenant := self._next()) and self.used + tenant.waiting[0].reservation.bytes <= self.total:
            waiter = tenant.waiting.popleft()
            self._turns += 1
            tenant.last_turn = self._turns
            tenant.used += waiter.reservation.bytes
            self.used += waiter.reservation.bytes
            waiter.admitted.set_result(None)

    def _next(self) -> _Tenant | None:
        """Return the waiting tenant with the least memory, then the oldest turn."""
        ready = (tenant for tenant in self._tenants.values() if tenant.waiting and self._has_share(tenant))
        return min(ready, key=lambda tenant: (tenant.used, tenant.last_turn), default=None)

    def _has_share(self, tenant: _Tenant) -> bool:
        return not tenant.used or tenant.used + tenant.waiting[0].reservation.bytes <= self._share

    def _forget_idle(self, name: str) -> None:
        tenant = self._tenants.get(name)
        if tenant and not tenant.used and not tenant.waiting:
            del self._tenants[name]
