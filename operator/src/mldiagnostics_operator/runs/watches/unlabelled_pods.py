"""Pods of runs without the label of their run, by those of their controllers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.workloads.kinds import LONE_POD
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_kube.cache.informer import Informer, Selection
from mldiagnostics_kube.cache.object_store import key_of
from mldiagnostics_kube.client.apiserver import ClusterError, path_to

from mldiagnostics_operator.runs.watches.informer_tasks import InformerTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_kube.cache.informer import Backoff, InformerMetrics
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey, RunPodStore

_log: Final = logging.getLogger(__name__)

SEARCH_S: Final = 0.2
"""Pause between two searches: at most 5 requests a second, however many runs wait for pods."""
MAX_WATCHES: Final = 200
"""Runs with a watch of their own; with the webhook there are none."""
_UNLABELLED: Final = f"!{RUN_LABEL}"


class UnlabelledPods:
    """Follows the unlabelled pods of runs, each run with a watch of its own.

    A run without the pods that it needs is searched for; only one that has unlabelled pods gets a watch.

    Args:
        cluster: Client of the API server.
        store_of: Returns the store of the pods of a namespace.
        metrics: Metrics of the watches.
        backoff: Pauses after failures.
    """

    def __init__(
        self,
        cluster: ApiClient,
        store_of: Callable[[str], RunPodStore],
        metrics: InformerMetrics,
        *,
        backoff: Backoff,
    ) -> None:
        self._cluster = cluster
        self._store_of = store_of
        self._metrics = metrics
        self._backoff = backoff
        self._watches: InformerTasks[LabelKey, OwnedPodStore] = InformerTasks(metrics)
        self._selections: dict[LabelKey, Selection] = {}
        """The selection of the watch of each run."""
        self._wanted: dict[LabelKey, ObservedWorkload] = {}
        self._woken = asyncio.Event()
        self._is_full = False

    def search(self, key: LabelKey, workload: ObservedWorkload) -> None:
        """Search soon for unlabelled pods of a run, unless they are followed."""
        selection = _selection(workload)
        if selection is not None and self._selections.get(key) != selection:
            self._wanted[key] = workload
            self._woken.set()

    def forget(self, key: LabelKey) -> None:
        """Follow the pods of a run no longer."""
        self._wanted.pop(key, None)
        if self._selections.pop(key, None):
            self._watches.stop(key)

    async def run(self) -> None:
        """Search and follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    await self._woken.wait()
                    self._woken.clear()
                    while self._wanted:
                        key = next(iter(self._wanted))
                        await self._search(group, key, self._wanted.pop(key))
                        await asyncio.sleep(SEARCH_S)
            finally:
                self._selections.clear()
                self._watches.stop_all()

    async def _search(self, group: asyncio.TaskGroup, key: LabelKey, workload: ObservedWorkload) -> None:
        selection, path = _selection(workload), path_to("", "v1", "pods", namespace=workload.namespace)
        if selection is None or (key not in self._selections and self._is_crowded()):
            return
        pods: list[bool] = []
        with suppress(ClusterError):  # searched again at the next look at the run
            pods = await self._cluster.items(
                path,
                lambda pod: is_part(pod["metadata"], workload) or None,
                labels=selection.labels,
                fields=selection.fields,
                metadata_only=True,
                most=1,
            )
        if not pods:
            return
        self.forget(key)
        self._selections[key] = selection
        informer = Informer(
            "unlabelled-pods",
            [path],
            cluster=self._cluster,
            store=OwnedPodStore(key, workload, self._store_of(workload.namespace)),
            metrics=self._metrics,
            backoff=self._backoff,
            selection=selection,
        )
        self._watches.start(group, key, informer)

    def _is_crowded(self) -> bool:
        crowded = len(self._selections) >= MAX_WATCHES
        if crowded and not self._is_full:
            _log.warning(
                "more than %(watched)d runs have pods without the label %(label)s; start-up and causes of the others "
                "are not recorded: install the webhook",
                {"watched": MAX_WATCHES, "label": RUN_LABEL},
            )
        self._is_full = crowded
        return crowded


class OwnedPodStore:
    """The store of an informer of the unlabelled pods of one run."""

    left_out: int = 0

    def __init__(self, key: LabelKey, workload: ObservedWorkload, store: RunPodStore) -> None:
        self._key = key
        self._workload = workload
        self._store = store
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def put(self, item: Mapping[str, Any]) -> None:
        """Keep a pod, unless it belongs to another object."""
        if is_part(item["metadata"], self._workload):
            self._names.add(key_of(item))
            self._store.add(item, self._key)

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget a pod that was deleted."""
        self._names.discard(key_of(item))
        self._store.remove(item)

    def keep_only(self, keys: set[str]) -> None:
        """Forget all pods of the run but these; their last state was not seen."""
        for name in self._names - keys:
            self._store.drop(name)
        self._names &= keys


def is_part(metadata: Mapping[str, Any], workload: ObservedWorkload) -> bool:
    """Return whether a selected pod can belong to this workload.

    It can belong to another object with the same labels, or to an earlier workload of this name.
    """
    if workload.kind is LONE_POD:
        return bool(metadata["uid"] == workload.uid)
    if ObjectReference.to_controller(metadata, workload.namespace) is None:
        return False
    created, since = metadata.get("creationTimestamp") or "", workload.metadata.get("creationTimestamp") or ""
    return bool(created >= since)  # both are RFC 3339 in UTC, in whole seconds


def _selection(workload: ObservedWorkload) -> Selection | None:
    """Return what selects the unlabelled pods of a workload; None while nothing does."""
    if workload.kind is LONE_POD:
        return Selection(labels=_UNLABELLED, fields=f"metadata.name={workload.name}", metadata_only=False)
    if not workload.pods:
        return None
    return Selection(labels=f"{workload.pods},{_UNLABELLED}", metadata_only=False)
