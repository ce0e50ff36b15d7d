"""Observation of the pods of runs, and of nodes and events when a pod ends."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.disruptions import event_evidence, node_evidence
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.run_observation import RunObservation
from mldiagnostics_kube.apiserver import ClusterError, NotFound, path_to
from mldiagnostics_kube.clock import Clock, utc_now
from mldiagnostics_kube.informer import Backoff, Informer, Selection

from mldiagnostics_operator.runs.run_pods import RunPodStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.informer import InformerMetrics

    from mldiagnostics_operator.runs.run_pods import EndedPod, LabelKey, PodsOfRun

_log: Final = logging.getLogger(__name__)

NOTIFY_S: Final = 1.0
"""Changes of pods are passed on together: a run of 2000 pods starts with 10 000 changes."""
EXAMINED_S: Final = (1.0, 60.0, 380.0)
"""Times after the end of a pod at which its node and its events are read: a lost node shows after 50 s, and its pods
are deleted after 300 s more."""
BACKOFF: Final = Backoff()
MAX_EVENTS: Final = 100
"""Events that are read of one object."""
_NODE_EVENTS: Final = "default"
"""The namespace in which components record events of nodes."""


class RunObserver:
    """Observes the pods of all runs by their label, never other pods.

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
        self._cluster = cluster
        self._changed = changed
        self._clock = clock
        self._news: set[LabelKey] = set()
        self._due: dict[LabelKey, list[float]] = {}
        """Times of the event loop at which the ended pods of a run are examined."""
        self._woken = asyncio.Event()
        self._is_followed = is_followed
        self._reads_node_events = not namespaces or _NODE_EVENTS in namespaces
        self._pods = [RunPodStore(self._note, self._note_end, is_followed) for _ in namespaces or (None,)]
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
            for namespace, store in zip(namespaces or (None,), self._pods, strict=True)
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
        run = self._find(key)
        return RunObservation(
            created=created,
            admitted=admitted,
            expected=expected,
            pods=run.of_attempt(attempt) if run else (),
            evidence=tuple(run.evidence.values()) if run else (),
        )

    def forget(self, key: LabelKey) -> None:
        """Forget the evidence of a run that has ended."""
        self._due.pop(key, None)
        for store in self._pods:
            store.forget(key)

    async def run(self) -> None:
        """Observe until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            group.create_task(self._examine_ended())
            group.create_task(self._notify())

    def _find(self, key: LabelKey) -> PodsOfRun | None:
        return next((run for store in self._pods if (run := store.of(key)) is not None), None)

    def _note(self, key: LabelKey) -> None:
        self._news.add(key)

    def _note_end(self, key: LabelKey) -> None:
        now = asyncio.get_running_loop().time()
        self._due[key] = [now + delay_s for delay_s in EXAMINED_S]
        self._woken.set()

    async def _notify(self) -> None:
        while True:
            await asyncio.sleep(NOTIFY_S)
            news, self._news = self._news, set()
            for key in news:
                self._changed(key)

    async def _examine_ended(self) -> None:
        """Examine the ended pods of each run at its times."""
        loop = asyncio.get_running_loop()
        while True:
            self._woken.clear()
            for key, times in list(self._due.items()):
                if times[0] > loop.time():
                    continue
                del times[0]
                if not times:
                    del self._due[key]
                await self._examine(key, last=not times)
            next_at = min((times[0] for times in self._due.values()), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await self._woken.wait()

    async def _examine(self, key: LabelKey, *, last: bool) -> None:
        run = self._find(key)
        if run is None or not self._is_followed(key):
            return
        ended = list(run.ended.values())
        if last:
            run.ended.clear()
        try:
            if await self._find_evidence(key[0], run, ended):
                self._note(key)
        except ClusterError as error:
            _log.warning("Nodes and events of pods that ended in namespace %s cannot be read: %s", key[0], error)

    async def _find_evidence(self, namespace: str, run: PodsOfRun, ended: Collection[EndedPod]) -> bool:
        """Add the evidence of nodes and events; return whether there is more than before."""
        before = len(run.evidence)
        for pod in ended:
            await self._add_events(run, namespace, f"involvedObject.uid={pod.uid}")
        for name in {pod.node for pod in ended if pod.node}:
            run.add(node_evidence(name, await self._node(name), seen=self._clock()))
            if self._reads_node_events:
                await self._add_events(run, _NODE_EVENTS, f"involvedObject.kind=Node,involvedObject.name={name}")
        return len(run.evidence) > before

    async def _node(self, name: str) -> dict[str, Any] | None:
        with suppress(NotFound):
            return await self._cluster.get(path_to("", "v1", "nodes", name=name))
        return None

    async def _add_events(self, run: PodsOfRun, namespace: str, fields: str) -> None:
        path = path_to("", "v1", "events", namespace=namespace)
        for item in await self._cluster.items(path, event_evidence, fields=fields, most=MAX_EVENTS):
            run.add(item)
