"""The watches of the pods of runs, and of all that explains their attempts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_kube.cache.informer import Backoff, Informer, Selection
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import Clock, utc_now

from mldiagnostics_operator.control_plane.identity.deleted_pods import DeletedPods
from mldiagnostics_operator.runs.watches.creation_failures import CreationFailures
from mldiagnostics_operator.runs.watches.pod_examination import PodExamination
from mldiagnostics_operator.runs.watches.run_pods import RunPodStore
from mldiagnostics_operator.runs.watches.unlabelled_pods import UnlabelledPods

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mldiagnostics_api.disruptions import Evidence
    from mldiagnostics_kube.cache.informer import InformerMetrics
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey, PodsOfRun

NOTIFY_S: Final = 1.0
"""Changes of pods are passed on together: a run of 2000 pods starts with 10 000 changes."""
BACKOFF: Final = Backoff()


class PodWatches:
    """Watches the pods of all runs, never other pods.

    Pods are followed by the label of their run; those without it by the labels of their controller.

    Args:
        cluster: Client of the API server.
        namespaces: Namespaces that the operator serves; empty: all.
        changed: Receives the key of each run with news, at most once a second.
        is_followed: Returns whether a run exists that has not ended.
        metrics: Metrics of the watch.
        clock: Wall clock.
    """

    def __init__(
        self,
        cluster: ApiClient,
        namespaces: Collection[str],
        changed: Callable[[LabelKey], None],
        metrics: InformerMetrics,
        *,
        is_followed: Callable[[LabelKey], bool],
        backoff: Backoff = BACKOFF,
        clock: Clock = utc_now,
    ) -> None:
        self._changed = changed
        self._is_followed = is_followed
        self._news: set[LabelKey] = set()
        self._examination = PodExamination(
            cluster, namespaces, pods_of=self._followed_pods, changed=self._news.add, clock=clock
        )
        self._failures = CreationFailures(cluster, self._news.add)
        self.deleted_pods = DeletedPods()
        """Passes the deletions of pods on."""
        self._pods: dict[str | None, RunPodStore] = {
            namespace: RunPodStore(
                self._news.add,
                self._examination.note_end,
                is_followed,
                started=self._examination.note_start,
                deleted=self.deleted_pods,
            )
            for namespace in namespaces or (None,)
        }
        self._default = next(iter(self._pods.values()))
        self._unlabelled = UnlabelledPods(cluster, self._store_of, metrics, backoff=backoff)
        self._informers = [
            Informer(
                "run-pods",
                [path_to("", "v1", "pods", namespace=namespace)],
                cluster=cluster,
                store=store,
                metrics=metrics,
                backoff=backoff,
                selection=Selection(labels=RUN_LABEL, metadata_only=False),
            )
            for namespace, store in self._pods.items()
        ]

    def of(self, key: LabelKey) -> PodsOfRun | None:
        """Return the pods of a run and the evidence that they left; None if none was seen."""
        return self._store_of(key[0]).of(key)

    def refused(self, key: LabelKey) -> Evidence | None:
        """Return the newest refusal to create pods of a run; None if none was read."""
        return self._failures.of(key)

    def search(self, key: LabelKey, attempt: int, workload: ObservedWorkload) -> None:
        """Search for the pods that a workload lacks, and for the reason.

        Call it now and then for each run that has not ended.
        """
        state = workload.state
        if state is None or state.suspended or state.ended is not None:
            return
        run = self.of(key)
        if len(run.of_attempt(attempt) if run else ()) < (state.hosts or 1):
            self._unlabelled.search(key, workload)
            self._failures.search(key, workload)

    def note(self, key: LabelKey, evidence: Evidence) -> None:
        """Note the evidence of an object that is not a pod."""
        if self._store_of(key[0]).note(key, evidence):
            self._news.add(key)

    def forget(self, key: LabelKey) -> None:
        """Forget the evidence of a run that has ended."""
        self._examination.forget(key)
        self._unlabelled.forget(key)
        self._failures.forget(key)
        self._store_of(key[0]).forget(key)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            group.create_task(self._unlabelled.run())
            group.create_task(self._failures.run())
            group.create_task(self._examination.run())
            group.create_task(self._notify())

    def _store_of(self, namespace: str) -> RunPodStore:
        return self._pods.get(namespace, self._default)

    def _followed_pods(self, key: LabelKey) -> PodsOfRun | None:
        return self.of(key) if self._is_followed(key) else None

    async def _notify(self) -> None:
        while True:
            await asyncio.sleep(NOTIFY_S)
            news = list(self._news)
            self._news.clear()
            for key in news:
                self._changed(key)
