"""The watches of workloads: by their label, and in labelled namespaces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.matching import EXCLUDED_NAMESPACES, EXCLUDED_PREFIX
from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, OPT_IN_LABEL, RUN_CREATED_ANNOTATION
from mldiagnostics_api.workloads import LONE_POD, WORKLOADS, OptIn
from mldiagnostics_kube.apiserver import ClusterError, path_to
from mldiagnostics_kube.informer import Backoff, Informer, Selection
from mldiagnostics_kube.object_store import key_of

from mldiagnostics_operator.runs.observed import ObservedWorkload, observe

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mldiagnostics_api.workloads import WorkloadKind
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.informer import InformerMetrics

_log: Final = logging.getLogger(__name__)

KINDS: Final = tuple(kind for kind in WORKLOADS if not kind.groups and kind.kind != "ReplicaSet")
"""Kinds that can be a run of their own; a ReplicaSet belongs to its Deployment."""
MAX_WORKLOADS: Final = 20_000
"""Observed workloads of each watch; one takes about 1.5 KiB."""
MAX_NAMESPACES: Final = 200
"""Labelled namespaces with watches of their own; each costs the API server one watch for each kind that it serves."""
NAMESPACES_S: Final = 15.0
"""Pause between two reads of the namespaces' labels, if the operator may not watch them."""
_OPTED_IN: Final = f"{OPT_IN_LABEL}=true"
_STOPPED: Final = "stopped"

Changed = Callable[[ObservedWorkload, bool], None]
"""Accepts a workload, and whether it left its watch: it was deleted, or its label was removed."""


class WorkloadStore:
    """Keeps what runs need of the workloads of one watch, and reports every change."""

    def __init__(self, kind: WorkloadKind, changed: Changed) -> None:
        self._kind = kind
        self._changed = changed
        self._items: dict[str, ObservedWorkload] = {}
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, namespace: str, name: str) -> ObservedWorkload | None:
        """Return a workload as the watch delivered it last; None if it does not."""
        return self._items.get(f"{namespace}/{name}")

    def put(self, item: Mapping[str, Any]) -> None:
        """Reduce and keep an object; report it if one of the kept parts changed."""
        key = key_of(item)
        observed = observe(self._kind, item, annotations=(RUN_CREATED_ANNOTATION,))
        before = self._items.get(key)
        if before is None and len(self._items) >= MAX_WORKLOADS:
            self.left_out += 1
            return
        self._items[key] = observed
        if before is not None and before.uid != observed.uid:
            self._changed(before, True)  # noqa: FBT003 - the second of two arguments
        if before != observed:
            self._changed(observed, False)  # noqa: FBT003 - the second of two arguments

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget an object and report it."""
        self._forget(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        """Forget all objects but these, and report them."""
        for key in self._items.keys() - keys:
            self._forget(key)

    def report_all(self) -> None:
        """Report every kept workload again, because labels of its namespace changed."""
        for observed in self._items.values():
            self._changed(observed, False)  # noqa: FBT003 - the second of two arguments

    def _forget(self, key: str) -> None:
        observed = self._items.pop(key, None)
        if observed is not None:
            self._changed(observed, True)  # noqa: FBT003 - the second of two arguments


@dataclass
class NamespaceLabels:
    """The labels of the labelled namespaces, by name."""

    changed: Callable[[], None]
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def put(self, item: Mapping[str, Any]) -> None:
        """Keep the labels of a namespace."""
        labels = item["metadata"].get("labels") or {}
        kept = {key: labels[key] for key in (OPT_IN_LABEL, EXEMPT_NAMESPACE_LABEL) if key in labels}
        name = item["metadata"]["name"]
        if self.labels.get(name) != kept:
            self.labels[name] = kept
            self.changed()

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget a namespace."""
        if self.labels.pop(item["metadata"]["name"], None) is not None:
            self.changed()

    def keep_only(self, keys: set[str]) -> None:
        """Forget all namespaces but these."""
        gone = self.labels.keys() - {key.partition("/")[2] for key in keys}
        for name in gone:
            del self.labels[name]
        if gone:
            self.changed()


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
        self._running: dict[str, list[tuple[Informer[WorkloadStore], asyncio.Task[None]]]] = {}
        self._too_many_logged = False

    @property
    def settled(self) -> bool:
        """Whether every watch has listed its objects once, or cannot."""
        informers = [informer for each in self._running.values() for informer, _ in each]
        return bool(informers) and all(informer.settled for informer in informers)

    @property
    def left_out(self) -> int:
        """Changes of workloads for which there was no room."""
        return sum(informer.store.left_out for each in self._running.values() for informer, _ in each)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace that decide about runs."""
        return self._namespaces.labels.get(namespace, {})

    def newest(self, workload: ObservedWorkload) -> ObservedWorkload | None:
        """Return the newest observation of a workload; None if no watch delivers it."""
        for informer, _ in (*self._running.get("", ()), *self._running.get(workload.namespace, ())):
            if informer.name == workload.kind.plural:
                observed: ObservedWorkload | None = informer.store.get(workload.namespace, workload.name)
                if observed is not None and observed.uid == workload.uid:
                    return observed
        return None

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            try:
                if self._served:
                    await self._run_in_served(group)
                else:
                    await self._run_everywhere(group)
            finally:
                for name in list(self._running):
                    self._stop(name)

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
            for name in self._running.keys() - wanted - {""}:
                self._stop(name)
            for name in wanted - self._running.keys():
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
                "%d namespaces have the label %s, %d of them are watched; label the workloads in the others",
                len(labelled),
                _OPTED_IN,
                MAX_NAMESPACES,
            )
        return set(labelled[:MAX_NAMESPACES])

    def _start(
        self, group: asyncio.TaskGroup, name: str, kinds: Iterable[WorkloadKind], namespace: str | None, labels: str
    ) -> None:
        self._running[name] = []
        for kind in kinds:
            # A pod without a controller needs the label itself, so pods are never watched without it.
            selection = Selection(labels=_OPTED_IN if kind is LONE_POD else labels, metadata_only=False)
            paths = [path_to(kind.group, version, kind.plural, namespace=namespace) for version in kind.versions]
            informer = Informer(
                kind.plural,
                paths,
                cluster=self._cluster,
                store=WorkloadStore(kind, self._changed),
                metrics=self._metrics,
                backoff=self._backoff,
                selection=selection,
            )
            self._running[name].append((informer, group.create_task(informer.run())))

    def _stop(self, name: str) -> None:
        for informer, task in self._running.pop(name, []):
            task.cancel()
            informer.store.keep_only(set())
            self._metrics.watch(informer.name, before=informer.state, now=_STOPPED)

    def report_all(self) -> None:
        """Report every watched workload again."""
        for informers in self._running.values():
            for informer, _ in informers:
                informer.store.report_all()
