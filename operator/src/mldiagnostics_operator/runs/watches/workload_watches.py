"""The watches of workloads: by their label, and in labelled namespaces."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, OPT_IN_LABEL
from mldiagnostics_api.workloads.kinds import LONE_POD, WORKLOADS, OptIn
from mldiagnostics_api.workloads.matching import EXCLUDED_NAMESPACES, EXCLUDED_PREFIX
from mldiagnostics_kube.cache.informer import Backoff, Informer, Selection
from mldiagnostics_kube.client.apiserver import ClusterError, path_to

from mldiagnostics_operator.runs.watches.informer_tasks import InformerTasks
from mldiagnostics_operator.runs.watches.run_watch import CHECK_S
from mldiagnostics_operator.runs.watches.workload_store import NamespaceLabels, WorkloadStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mldiagnostics_api.workloads.kinds import WorkloadKind
    from mldiagnostics_kube.cache.informer import InformerMetrics
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.watches.workload_store import Changed

_log: Final = logging.getLogger(__name__)

KINDS: Final = tuple(kind for kind in WORKLOADS if not kind.groups and kind.kind != "ReplicaSet")
"""Kinds that can be a run of their own; a ReplicaSet belongs to its Deployment."""
MAX_NAMESPACES: Final = 200
"""Labelled namespaces with watches of their own; each costs the API server one watch for each kind that it serves."""
NAMESPACES_S: Final = 15.0
"""Pause between two reads of the namespaces' labels, if the operator may not watch them."""
_OPTED_IN: Final = f"{OPT_IN_LABEL}=true"


class WorkloadWatches:
    """Watches the workloads that may be runs, until cancelled.

    Args:
        cluster: Client of the API server.
        namespaces: Namespaces that the operator serves; empty: all, with watches by label in the whole cluster, and
            watches in the labelled namespaces.
        changed: Receives each change.
        metrics: Metrics of the watches.
    """

    def __init__(
        self,
        cluster: ApiClient,
        namespaces: Collection[str],
        changed: Changed,
        metrics: InformerMetrics,
        *,
        backoff: Backoff,
    ) -> None:
        self._cluster = cluster
        self._served = namespaces
        self._changed = changed
        self._metrics = metrics
        self._backoff = backoff
        self._labels_changed = asyncio.Event()
        self._namespaces = NamespaceLabels(self._labels_changed.set)
        self._running: InformerTasks[str, WorkloadStore] = InformerTasks(metrics)
        """By namespace; those of the whole cluster have an empty one."""
        self._too_many_logged = False

    @property
    def settled(self) -> bool:
        """Whether every watch has listed its objects once, or cannot."""
        informers = self._running.all
        return bool(informers) and all(informer.settled for informer in informers)

    @property
    def left_out(self) -> int:
        """Changes of workloads for which there was no room."""
        return sum(informer.store.left_out for informer in self._running.all)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace that decide about runs."""
        return self._namespaces.labels.get(namespace, {})

    def find(self, kind: WorkloadKind, namespace: str, name: str) -> ObservedWorkload | None:
        """Return a workload as its watch delivered it last; None if no watch delivers it."""
        informers = (*self._running.of(""), *self._running.of(namespace))
        delivered = (each.store.get(namespace, name) for each in informers if each.name == kind.plural)
        return next((workload for workload in delivered if workload is not None), None)

    async def until_settled(self) -> None:
        """Wait until every watch has listed its objects once, or cannot."""
        while not self.settled:  # noqa: ASYNC110 - polls the states of many informers
            await asyncio.sleep(CHECK_S)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            try:
                if self._served:
                    await self._run_in_served(group)
                else:
                    await self._run_everywhere(group)
            finally:
                self._running.stop_all()

    async def _run_in_served(self, group: asyncio.TaskGroup) -> None:
        """Watch all workloads of the served namespaces, without other permissions."""
        for namespace in self._served:
            self._start(group, namespace, KINDS, namespace, "")
        while True:
            for namespace in self._served:
                path = path_to("", "v1", "namespaces", name=namespace)
                with suppress(ClusterError):
                    self._namespaces.put(await self._cluster.get(path, metadata_only=True))
            if self._labels_changed.is_set():
                self._labels_changed.clear()
                self.report_all()
            await asyncio.sleep(NAMESPACES_S)

    async def _run_everywhere(self, group: asyncio.TaskGroup) -> None:
        namespaces = Informer(
            "namespaces",
            [path_to("", "v1", "namespaces")],
            cluster=self._cluster,
            store=self._namespaces,
            metrics=self._metrics,
            backoff=self._backoff,
            selection=Selection(labels=_OPTED_IN),
        )
        group.create_task(namespaces.run())
        self._start(group, "", KINDS, None, _OPTED_IN)
        by_namespace = [kind for kind in KINDS if kind.opt_in is OptIn.NAMESPACE]
        while True:
            self._labels_changed.clear()
            wanted = self._wanted()
            for name in {*self._running.keys} - wanted - {""}:
                self._running.stop(name)
            for name in wanted - {*self._running.keys}:
                self._start(group, name, by_namespace, name, "")
            await self._labels_changed.wait()

    def _wanted(self) -> set[str]:
        labelled = sorted(
            name
            for name, labels in self._namespaces.labels.items()
            if labels.get(EXEMPT_NAMESPACE_LABEL) != "true"
            and name not in EXCLUDED_NAMESPACES
            and not name.startswith(EXCLUDED_PREFIX)
        )
        if len(labelled) > MAX_NAMESPACES and not self._too_many_logged:
            self._too_many_logged = True
            _log.warning(
                "%(namespaces)d namespaces have the label %(label)s, %(watched)d of them are watched; "
                "label the workloads in the others",
                {"namespaces": len(labelled), "label": _OPTED_IN, "watched": MAX_NAMESPACES},
            )
        return set(labelled[:MAX_NAMESPACES])

    def _start(
        self, group: asyncio.TaskGroup, name: str, kinds: Iterable[WorkloadKind], namespace: str | None, labels: str
    ) -> None:
        informers = []
        for kind in kinds:
            # A pod without a controller needs the label itself, so pods are never watched without it.
            selection = Selection(labels=_OPTED_IN if kind is LONE_POD else labels, metadata_only=False)
            paths = [path_to(kind.group, version, kind.plural, namespace=namespace) for version in kind.versions]
            informers.append(
                Informer(
                    kind.plural,
                    paths,
                    cluster=self._cluster,
                    store=WorkloadStore(kind, self._changed),
                    metrics=self._metrics,
                    backoff=self._backoff,
                    selection=selection,
                )
            )
        self._running.start(group, name, *informers)

    def report_all(self) -> None:
        """Report every watched workload again."""
        for informer in self._running.all:
            informer.store.report_all()
