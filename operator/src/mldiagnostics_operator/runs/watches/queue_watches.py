"""The watches of Kueue's Workloads, in the namespaces of runs with a queue."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.lifecycle.queueing import combined, owner_uids, queue_verdict
from mldiagnostics_kube.cache.informer import Informer, Selection
from mldiagnostics_kube.cache.object_store import key_of
from mldiagnostics_kube.client.apiserver import path_to

from mldiagnostics_operator.runs.watches.informer_tasks import InformerTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mldiagnostics_api.lifecycle.queueing import QueueVerdict
    from mldiagnostics_kube.cache.informer import Backoff, InformerMetrics
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

_log: Final = logging.getLogger(__name__)

GROUP: Final = "kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
PLURAL: Final = "workloads"
MAX_NAMESPACES: Final = 200
"""Namespaces with a watch; the runs of others show what their own suspension shows."""
MAX_WORKLOADS: Final = 20_000
"""Workloads of Kueue in memory of one namespace; one takes about 1 KiB."""


class QueueWatches:
    """Follows the verdicts of Kueue about workloads; without Kueue there are none.

    Args:
        cluster: Client of the API server.
        changed: Receives the uid of each workload with a new verdict.
        metrics: Metrics of the watches.
        backoff: Pauses after failures, and while Kueue is not installed.
        clock: Wall clock.
    """

    def __init__(
        self,
        cluster: ApiClient,
        changed: Callable[[str], None],
        metrics: InformerMetrics,
        *,
        backoff: Backoff,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._changed = changed
        self._metrics = metrics
        self._backoff = backoff
        self._clock = clock
        self._watches: InformerTasks[str, QueueStore] = InformerTasks(metrics)
        self._wanted: frozenset[str] = frozenset()
        self._woken = asyncio.Event()
        self._is_full = False

    def verdict(self, namespace: str, uid: str) -> QueueVerdict | None:
        """Return Kueue's verdict about a workload; None if none is known."""
        verdicts = [verdict for informer in self._watches.of(namespace) for verdict in informer.store.of(uid)]
        return combined(verdicts)

    def follow(self, namespaces: Collection[str]) -> None:
        """Follow the Workloads of exactly these namespaces."""
        if len(namespaces) > MAX_NAMESPACES and not self._is_full:
            _log.warning(
                "Queues of %(namespaces)d namespaces have runs, %(watched)d are watched",
                {"namespaces": len(namespaces), "watched": MAX_NAMESPACES},
            )
        self._is_full = len(namespaces) > MAX_NAMESPACES
        wanted = frozenset(sorted(namespaces)[:MAX_NAMESPACES])
        if wanted != self._wanted:
            self._wanted = wanted
            self._woken.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    for namespace in {*self._watches.keys} - self._wanted:
                        self._watches.stop(namespace)
                    for namespace in self._wanted - {*self._watches.keys}:
                        self._watches.start(group, namespace, self._informer(namespace))
            finally:
                self._watches.stop_all()

    def _informer(self, namespace: str) -> Informer[QueueStore]:
        return Informer(
            f"kueue-{PLURAL}",
            [path_to(GROUP, version, PLURAL, namespace=namespace) for version in VERSIONS],
            cluster=self._cluster,
            store=QueueStore(self._changed, self._clock),
            metrics=self._metrics,
            backoff=self._backoff,
            selection=Selection(metadata_only=False),
        )


class QueueStore:
    """Keeps the verdicts of Kueue about the workloads of a namespace.

    Args:
        changed: Receives the uid of each workload with a new verdict.
        clock: Wall clock.
    """

    def __init__(self, changed: Callable[[str], None], clock: Clock) -> None:
        self._changed = changed
        self._clock = clock
        self._items: dict[str, tuple[tuple[str, ...], QueueVerdict]] = {}
        self._by_owner: dict[str, set[str]] = {}
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._items)

    def of(self, uid: str) -> list[QueueVerdict]:
        """Return the verdicts about a workload."""
        return [self._items[key][1] for key in sorted(self._by_owner.get(uid, ()))]

    def put(self, item: Mapping[str, Any]) -> None:
        """Reduce and keep an object; report it if the verdict is new."""
        key = key_of(item)
        before = self._items.get(key)
        if before is None and len(self._items) >= MAX_WORKLOADS:
            self.left_out += 1
            return
        now = owner_uids(item), queue_verdict(item, seen=self._clock())
        if before == now:
            return
        self._forget(key)
        self._items[key] = now
        for uid in now[0]:
            self._by_owner.setdefault(uid, set()).add(key)
            self._changed(uid)

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget an object that was deleted."""
        self._forget(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        """Forget all objects but these."""
        for key in self._items.keys() - keys:
            self._forget(key)

    def _forget(self, key: str) -> None:
        uids, _ = self._items.pop(key, ((), None))
        for uid in uids:
            keys = self._by_owner[uid]
            keys.discard(key)
            if not keys:
                del self._by_owner[uid]
