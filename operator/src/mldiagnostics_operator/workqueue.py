"""A queue of keys that wait for a worker, namespaces in turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Container


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
    late: dict[K, float] = field(default_factory=dict)
    """Keys whose delay is over, with the time when it ended."""
    by_time: list[tuple[float, int, K]] = field(default_factory=list)
    """A heap; an entry whose time is not that in `late` is void."""

    def add_late(self, due: float, order: int, key: K) -> None:
        """Add a key whose delay is over."""
        if due < self.late.get(key, float("inf")):
            self.late[key] = due
            heappush(self.by_time, (due, order, key))

    def first_with_news(self, working: Container[K]) -> K | None:
        """Return the first key with news that no worker has."""
        return next((key for key in self.news if key not in working), None)

    def first_late(self, working: Container[K]) -> K | None:
        """Return the key without a worker whose delay ended first."""
        passed: list[tuple[float, int, K]] = []
        first: K | None = None
        while self.by_time and first is None:
            due, order, key = heappop(self.by_time)
            if self.late.get(key) == due:
                passed.append((due, order, key))
                first = None if key in working else key
        for entry in passed:
            heappush(self.by_time, entry)
        return first


class Workqueue(Generic[K]):
    """Keys of objects with work, as in client-go.

    A key waits once, however often it is added, and no two workers have it at the same time. Namespaces come in turn,
    so that the number of keys of one delays no other. In each, keys with news come first, in their order, then those
    whose delay is over, by the time when it ended: a key that is added again with that time keeps its place. Some
    workers take nothing but news, which therefore never wait for the many late keys of a large fleet.

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
        self._added_news = asyncio.Event()

    def has_news(self, namespace: str) -> bool:
        """Return whether a key of a namespace waits with news that no worker has."""
        waiting = self._waiting.get(namespace)
        return waiting is not None and waiting.first_with_news(self._working) is not None

    def add(self, key: K) -> None:
        """Let a worker have a key as soon as possible."""
        self._of(key).news.setdefault(key)
        self._added.set()
        self._added_news.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """Let a worker have a key after a delay; the shortest of several delays counts.

        Args:
            key: The key.
            delay_s: Seconds; negative for a delay that has ended already.
        """
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

    async def get(self, *, news_only: bool = False) -> K:
        """Return the next key; the caller has it until it calls `done`.

        Args:
            news_only: Whether a key without news is left to another worker.
        """
        added = self._added_news if news_only else self._added
        while (key := self._next(news_only=news_only)) is None:
            added.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._by_time[0][0] if self._by_time and not news_only else None):
                    await added.wait()
        self.drop(key)
        if (waiting := self._waiting.pop(key.namespace, None)) is not None:
            self._waiting[key.namespace] = waiting  # behind the other namespaces
        self._working[key] = asyncio.get_running_loop().create_future()
        return key

    def done(self, key: K) -> None:
        """Give a key back, to be called for each one that `get` returned."""
        self._working.pop(key).set_result(None)
        self._added.set()  # it may have been added meanwhile
        self._added_news.set()

    async def drain(self) -> None:
        """Return when the keys that workers have now are given back."""
        if self._working:
            await asyncio.wait({*self._working.values()})

    def _next(self, *, news_only: bool) -> K | None:
        self._end_delays()
        for waiting in self._waiting.values():
            key = waiting.first_with_news(self._working)
            if key is None and not news_only:
                key = waiting.first_late(self._working)
            if key is not None:
                return key
        return None

    def _end_delays(self) -> None:
        """Let the keys whose delay is over wait for a worker."""
        now = asyncio.get_running_loop().time()
        while self._by_time and self._by_time[0][0] <= now:
            due, _, key = heappop(self._by_time)
            if self._due.get(key) == due:
                del self._due[key]
                self._of(key).add_late(due, next(self._order), key)

    def _of(self, key: K) -> _WaitingKeys[K]:
        return self._waiting.setdefault(key.namespace, _WaitingKeys())
