"""Slots for work of all namespaces: bounded in total and per namespace, in turn."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class FairSlots:
    """Slots that namespaces take in turn, each in order and within its share.

    Args:
        total: Slots of all namespaces; None for any number.
        per_namespace: Slots of one namespace.

    Example:
        slots = FairSlots(8, per_namespace=2)
        async with slots.slot("ml"):
            ...
    """

    def __init__(self, total: int | None, *, per_namespace: int) -> None:
        self._total = total
        self.per_namespace: Final = per_namespace
        self._taken = Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By namespace; the first one is the next."""

    @asynccontextmanager
    async def slot(
        self, namespace: str, *, on_wait: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[Slot]:
        """Hold a slot during the block; `on_wait` is awaited first if there is none yet."""
        slot = Slot(self, namespace)
        await slot.take(on_wait)
        try:
            yield slot
        finally:
            slot.free()

    def enter(self, namespace: str) -> asyncio.Future[None]:
        """Return a future that is done once a slot is taken; give it back by `leave`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(turn)
        self._grant()
        return turn

    def leave(self, namespace: str, turn: asyncio.Future[None]) -> None:
        """Give back a slot, or a place in the queue."""
        if turn.done() and not turn.cancelled():
            self._taken[namespace] -= 1
            if not self._taken[namespace]:
                del self._taken[namespace]
        else:
            turn.cancel()
            queue = self._waiting[namespace]
            queue.remove(turn)
            if not queue:
                del self._waiting[namespace]
        self._grant()

    def _grant(self) -> None:
        while self._total is None or self._taken.total() < self._total:
            ready = (name for name in self._waiting if self._taken[name] < self.per_namespace)
            namespace = next(ready, None)
            if namespace is None:
                return
            queue = self._waiting.pop(namespace)
            self._taken[namespace] += 1
            queue.popleft().set_result(None)
            if queue:
                self._waiting[namespace] = queue  # behind the other namespaces


class Slot:
    """One slot, which the work that took it can give back for a while."""

    def __init__(self, slots: FairSlots, namespace: str) -> None:
        self._slots = slots
        self._namespace = namespace
        self._turn: asyncio.Future[None] | None = None

    async def take(self, on_wait: Callable[[], Awaitable[None]] | None = None) -> None:
        """Wait for a slot; give up the place in the queue if cancelled."""
        turn = self._turn = self._slots.enter(self._namespace)
        try:
            if on_wait is not None and not turn.done():
                await on_wait()
            await asyncio.wait({turn})
        except BaseException:
            self.free()
            raise

    @asynccontextmanager
    async def freed(self, on_wait: Callable[[], Awaitable[None]] | None = None) -> AsyncIterator[None]:
        """Give the slot back during the block, then wait for one again."""
        self.free()
        yield
        await self.take(on_wait)

    def free(self) -> None:
        """Give the slot back, if it is held."""
        if self._turn is not None:
            self._slots.leave(self._namespace, self._turn)
            self._turn = None
