"""Observation of the pods of runs, and of all that explains their attempts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.run_observation import RunObservation
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_kube.clock import Clock, utc_now
from mldiagnostics_kube.informer import Backoff, Informer, Selection

from mldiagnostics_operator.control_plane.deleted_pods import DeletedPods
from mldiagnostics_operator.runs.creation_failures import CreationFailures
from mldiagnostics_operator.runs.pod_examination import PodExamination
from mldiagnostics_operator.runs.run_pods import RunPodStore
from mldiagnostics_operator.runs.unlabelled_pods import UnlabelledPods

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from mldiagnostics_api.disruptions import Evidence
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.informer import InformerMetrics

    from mldiagnostics_operator.runs.observed import ObservedWorkload
    from mldiagnostics_operator.runs.run_pods import LabelKey, PodsOfRun

NOTIFY_S: Final = 1.0
"""Changes of pods are passed on together: a run of 2000 pods starts with 10 000 changes."""
BACKOFF: Final = Backoff()


class RunObserver:
    """Observes the pods of all runs, never other pods.

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

    def observe(
        self,
        key: LabelKey,
        attempt: int,
        *,
        created: datetime | None = None,
        admitted: datetime | None = None,
        expected: int | None = None,
    ) -> RunObservation:
        """Return the observation of a run now.

        Args:
            key: Namespace, and value of the run's label.
            attempt: Number of the current attempt.
            created: Creation of the workload.
            admitted: Admission of the attempt.
            expected: Number of pods that the workload needs.
        """
        run = self._store_of(key[0]).of(key)
        pulls = run.pulls_of(attempt) if run else ()
        return RunObservation(
            created=created,
            admitted=admitted,
            expected=expected,
            pods=run.of_attempt(attempt) if run else (),
            pulled=max((time for time in pulls if time), default=None),
            are_pulls_open=not pulls,
            refused=self._failures.of(key),
            evidence=tuple(run.evidence.values()) if run else (),
        )

    def search(self, key: LabelKey, attempt: int, workload: ObservedWorkload) -> None:
        """Search for the pods that a workload lacks, and for the reason.

        Call it now and then for each run that has not ended.
        """
        state = workload.state
        if state is None or state.suspended or state.ended is not None:
            return
        run = self._store_of(key[0]).of(key)
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
        """Observe until cancelled."""
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
        return self._store_of(key[0]).of(key) if self._is_followed(key) else None

    async def _notify(self) -> None:
        while True:
            await asyncio.sleep(NOTIFY_S)
            news = list(self._news)
            self._news.clear()
            for key in news:
                self._changed(key)
