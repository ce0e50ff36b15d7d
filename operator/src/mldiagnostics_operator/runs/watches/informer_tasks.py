"""Informers that start and stop while their owner runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from mldiagnostics_kube.cache.informer import InformerStore

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Collection, Hashable

    from mldiagnostics_kube.cache.informer import Informer, InformerMetrics

K = TypeVar("K", bound="Hashable")
S = TypeVar("S", bound=InformerStore)

_STOPPED: Final = "stopped"


class InformerTasks(Generic[K, S]):
    """Informers by key, each in a task."""

    def __init__(self, metrics: InformerMetrics) -> None:
        self._metrics = metrics
        self._running: dict[K, list[tuple[Informer[S], asyncio.Task[None]]]] = {}

    @property
    def keys(self) -> Collection[K]:
        """The keys with informers."""
        return self._running.keys()

    def of(self, key: K) -> list[Informer[S]]:
        """Return the informers of a key."""
        return [informer for informer, _ in self._running.get(key, ())]

    @property
    def all(self) -> list[Informer[S]]:
        """All informers."""
        return [informer for each in self._running.values() for informer, _ in each]

    def start(self, group: asyncio.TaskGroup, key: K, *informers: Informer[S]) -> None:
        """Start the informers of a key that has none."""
        self._running[key] = [(informer, group.create_task(informer.run())) for informer in informers]

    def stop(self, key: K) -> None:
        """Stop the informers of a key and empty their stores."""
        for informer, task in self._running.pop(key, ()):
            task.cancel()
            informer.store.keep_only(set())
            self._metrics.watch(informer.name, before=informer.state, now=_STOPPED)

    def stop_all(self) -> None:
        """Stop all informers."""
        for key in list(self._running):
            self.stop(key)
