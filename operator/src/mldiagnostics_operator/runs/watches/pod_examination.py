"""Reads nodes and events when pods of a run have started or ended."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.disruptions import event_evidence, node_evidence
from mldiagnostics_api.lifecycle.startup import event_time
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.runs.watches.run_pods import EndedPod, LabelKey, PodsOfRun

_log: Final = logging.getLogger(__name__)

PULLS_S: Final = 1.0
"""Time after the start of a pod at which the events of its pulls are read."""
EXAMINED_S: Final = (1.0, 60.0, 380.0)
"""Times after the end of a pod at which its node and its events are read: a lost node shows after 50 s, and its pods
are deleted after 300 s more."""
MAX_EVENTS: Final = 100
"""Events that are read of one object."""
_NODE_EVENTS: Final = "default"
"""The namespace in which components record events of nodes."""


class PodExamination:
    """Adds the evidence of nodes and events to the pods of runs.

    Args:
        cluster: Client of the API server.
        namespaces: Namespaces that the operator serves; empty: all.
        pods_of: Returns the pods of a run; None if none was seen, or nobody follows the run.
        changed: Receives the key of each run with news.
        clock: Wall clock.
    """

    def __init__(
        self,
        cluster: ApiClient,
        namespaces: Collection[str],
        *,
        pods_of: Callable[[LabelKey], PodsOfRun | None],
        changed: Callable[[LabelKey], None],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._reads_node_events = not namespaces or _NODE_EVENTS in namespaces
        self._pods_of = pods_of
        self._changed = changed
        self._clock = clock
        self._due: dict[LabelKey, list[float]] = {}
        """Times of the event loop at which the ended pods of a run are examined."""
        self._pulls_due: dict[LabelKey, float] = {}
        """Times of the event loop at which the events of pulls of a run are read."""
        self._woken = asyncio.Event()

    def note_end(self, key: LabelKey) -> None:
        """Examine the ended pods of a run soon, and again later."""
        now = asyncio.get_running_loop().time()
        self._due[key] = [now + delay_s for delay_s in EXAMINED_S]
        self._woken.set()

    def note_start(self, key: LabelKey) -> None:
        """Read the events of pulls of a run soon."""
        self._pulls_due.setdefault(key, asyncio.get_running_loop().time() + PULLS_S)
        self._woken.set()

    def forget(self, key: LabelKey) -> None:
        """Examine the pods of a run no longer."""
        self._due.pop(key, None)
        self._pulls_due.pop(key, None)

    async def run(self) -> None:
        """Examine the ended pods of each run at its times, and those that have started.

        One request at a time: events are read slowly rather than at the cost of the API server.
        """
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
            for key in [key for key, due in self._pulls_due.items() if due <= loop.time()]:
                self._pulls_due.pop(key, None)
                await self._read_pulls(key)
            next_at = min((*(times[0] for times in self._due.values()), *self._pulls_due.values()), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await self._woken.wait()

    async def _examine(self, key: LabelKey, *, last: bool) -> None:
        run = self._pods_of(key)
        if run is None:
            return
        ended = list(run.ended.values())
        if last:
            run.ended.clear()
        try:
            if await self._find_evidence(key[0], run, ended):
                self._changed(key)
        except ClusterError as error:
            _log.warning(
                "Nodes and events of pods that ended in namespace %(namespace)s cannot be read: %(error)s",
                {"namespace": key[0], "error": error},
            )

    async def _read_pulls(self, key: LabelKey) -> None:
        """Read the end of the pulls of the pods that started last."""
        run = self._pods_of(key)
        if run is None:
            return
        path = path_to("", "v1", "events", namespace=key[0])
        for pod in run.last_started():
            if pod.uid in run.pulls:
                continue
            times: list[datetime] = []
            try:
                fields = f"involvedObject.uid={pod.uid},reason=Pulled"
                times = await self._cluster.items(path, event_time, fields=fields, most=MAX_EVENTS)
            except ClusterError as error:
                _log.warning(
                    "The events of pods in namespace %(namespace)s cannot be read: %(error)s",
                    {"namespace": key[0], "error": error},
                )
            run.pulls[pod.uid] = max(times, default=None)
        self._changed(key)

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
