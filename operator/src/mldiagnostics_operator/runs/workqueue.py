"""The queue of keys that wait for the reconciler."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")


class Workqueue(Generic[K]):
    """Keys of objects with work, as in client-go.

    A key waits once, however often it is added, and no two workers have it at the same time. Keys with news come
    first, in their order, then those whose delay is over.

    Example:
        key = await queue.get()
        try:
            await reconcile(key)
        finally:
            queue.done(key)
    """

    def __init__(self) -> None:
        self._news: dict[K, None] = {}
        self._due: dict[K, float] = {}
        """Times of the event loop."""
        self._by_time: list[tuple[float, int, K]] = []
        """A heap; an entry whose time is not that in `_due` is void."""
        self._order = count()
        self._working: dict[K, asyncio.Future[None]] = {}
        self._added = asyncio.Event()

    @property
    def has_news(self) -> bool:
        """Whether a key waits that no worker has looked at since its news."""
        return any(key not in self._working for key in self._news)

    def add(self, key: K) -> None:
        """Let a worker have a key as soon as possible."""
        self._news.setdefault(key)
        self._added.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """Let a worker have a key after a delay; the shortest of several delays counts."""
        due = asyncio.get_running_loop().time() + delay_s
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heappush(self._by_time, (due, next(self._order), key))
            self._added.set()

    def drop(self, key: K) -> None:
        """Forget a key that waits."""
        self._news.pop(key, None)
        self._due.pop(key, None)

    async def get(self) -> K:
        """Return the next key; the caller has it until it calls `done`."""
        while (key := self._next()) is None:
            self._added.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._by_time[0][0] if self._by_time else None):
                    await self._added.wait()
        self.drop(key)
        self._working[key] = asyncio.get_running_loop().create_future()
        return key

    def done(self, key: K) -> None:
        """Give a key back, to be called for each one that `get` returned."""
        self._working.pop(key).set_result(None)
        self._added.set()  # it may have been added meanwhile

    async def drain(self) -> None:
        """Return when the keys that workers have now are given back."""
        if self._working:
            await asyncio.wait({*self._working.values()})

    def _next(self) -> K | None:
        for key in self._news:
            if key not in self._working:
                return key
        now = asyncio.get_running_loop().time()
        while self._by_time and self._by_time[0][0] <= now:
            due, _, key = heappop(self._by_time)
            if self._due.get(key) != due:
                continue
            if key not in self._working:
                return key
            self.add(key)  # a worker has it; it comes back with news
            del self._due[key]
        return None
