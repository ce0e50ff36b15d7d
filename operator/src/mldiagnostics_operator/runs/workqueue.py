"""The queue of keys that wait for the reconciler, namespaces in turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, count
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class NamespacedKey(Protocol):
    """A key of the queue; hashable."""

    @property
    def namespace(self) -> str:
        """Namespace of the object."""


K = TypeVar("K", bound=NamespacedKey)


@dataclass(slots=True)
class _WaitingKeys(Generic[K]):
    """The keys of one namespace that may be taken now."""

    news: dict[K, None] = field(default_factory=dict)
    late: dict[K, None] = field(default_factory=dict)
    """Keys whose delay is over."""

    def in_order(self) -> Iterator[K]:
        """Yield the keys with news first."""
        return chain(self.news, self.late)


class Workqueue(Generic[K]):
    """Keys of objects with work, as in client-go.

    A key waits once, however often it is added, and no two workers have it at the same time. Namespaces come in turn,
    so that the number of keys of one delays no other. In each, keys with news come first, in their order, then those
    whose delay is over.

    Example:
        key = await queue.get()
        try:
            await reconcile(key)
        finally:
            queue.done(key)
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _WaitingKeys[K]] = {}
        """By namespace; the first one with a free key is the next."""
        self._due: dict[K, float] = {}
        """Times of the event loop."""
        self._by_time: list[tuple[float, int, K]] = []
        """A heap; an entry whose time is not that in `_due` is void."""
        self._order = count()
        self._working: dict[K, asyncio.Future[None]] = {}
        self._added = asyncio.Event()

    def has_news(self, namespace: str) -> bool:
        """Return whether a key of a namespace waits with news that no worker has."""
        waiting = self._waiting.get(namespace)
        return waiting is not None and any(key not in self._working for key in waiting.news)

    def add(self, key: K) -> None:
        """Let a worker have a key as soon as possible."""
        self._of(key).news.setdefault(key)
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
        self._due.pop(key, None)
        if waiting := self._waiting.get(key.namespace):
            waiting.news.pop(key, None)
            waiting.late.pop(key, None)
            if not waiting.news and not waiting.late:
                del self._waiting[key.namespace]

    async def get(self) -> K:
        """Return the next key; the caller has it until it calls `done`."""
        while (key := self._next()) is None:
            self._added.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._by_time[0][0] if self._by_time else None):
                    await self._added.wait()
        self.drop(key)
        if (waiting := self._waiting.pop(key.namespace, None)) is not None:
            self._waiting[key.namespace] = waiting  # behind the other namespaces
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
        self._end_delays()
        free = (key for waiting in self._waiting.values() for key in waiting.in_order() if key not in self._working)
        return next(free, None)

    def _end_delays(self) -> None:
        """Let the keys whose delay is over wait for a worker."""
        now = asyncio.get_running_loop().time()
        while self._by_time and self._by_time[0][0] <= now:
            due, _, key = heappop(self._by_time)
            if self._due.get(key) == due:
                del self._due[key]
                self._of(key).late.setdefault(key)

    def _of(self, key: K) -> _WaitingKeys[K]:
        return self._waiting.setdefault(key.namespace, _WaitingKeys())
