"""The controller of schedules: all in turn, namespace by namespace.

All that must last is in the status of the schedules. A leadership starts with lists of its own.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from mldiagnostics_api.names import SCHEDULE_LABEL, MLRunPhase
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES, Resource
from mldiagnostics_kube.cache.informer import Backoff, Informer, NoInformerMetrics, Selection, SyncState
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.process.clock import Clock, utc_now

from mldiagnostics_operator.schedules.artifacts import SessionArtifacts
from mldiagnostics_operator.schedules.projected_store import ProjectedStore
from mldiagnostics_operator.schedules.projections import (
    AutomaticCapture,
    StoredSchedule,
    active_run,
    automatic_capture,
    stored_schedule,
)
from mldiagnostics_operator.schedules.readings import NamespaceReadings
from mldiagnostics_operator.schedules.schedule_step import limits_of
from mldiagnostics_operator.schedules.schedule_work import ScheduleWork
from mldiagnostics_operator.schedules.writer import ScheduleChanged, ScheduleWriter
from mldiagnostics_operator.supervision import keep_running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_api.v1alpha1.schedule import ScheduledCapture
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

LOOK_S: Final = 5.0
"""Pause between two looks at all schedules."""
LOOK_SHARE: Final = 10.0
"""A look at a namespace is followed by a pause of so many times its decisions: many schedules slow only themselves."""
NAMESPACES: Final = 8
"""Namespaces whose schedules are worked on at the same time."""
_READY: Final = (SyncState.FOLLOWED, SyncState.BEHIND)
T = TypeVar("T")


class ScheduleController:
    """Makes the captures of schedules.

    `holder` names this process in events.
    """

    name: ClassVar[str] = "schedules"

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        storage: Storage,
        exchange: RunExchange,
        clock: Clock = utc_now,
        look_s: float = LOOK_S,
    ) -> None:
        self._cluster, self._telemetry, self._exchange = cluster, telemetry, exchange
        self._clock, self._look_s = clock, look_s
        self._namespaces = config.watch_namespaces or (None,)
        self._most = config.policy.schedules_per_namespace
        self._limits = limits_of(config.policy)
        self._writer = ScheduleWriter(cluster, me=holder, clock=clock)
        self._storage = storage.apart()  # captures go on while a deletion hangs
        self._artifacts = SessionArtifacts(self._storage)
        self._schedules = ProjectedStore(stored_schedule)
        self._runs = ProjectedStore(active_run)
        self._captures = ProjectedStore(automatic_capture)
        self._works: dict[str, ScheduleWork] = {}
        self._readings: dict[str, NamespaceReadings] = {}
        self._next_look: dict[str, float] = {}
        self._looking: dict[str, asyncio.Task[float]] = {}
        self._slots = asyncio.Semaphore(NAMESPACES)
        self._accepting = True

    def stop_accepting(self) -> None:
        """Begin no other look: the next leader does it."""
        self._accepting = False

    async def drain(self) -> None:
        """Return when no write is in progress."""
        while self._looking:
            await asyncio.wait(self._looking.values())

    async def run(self) -> None:
        """Make captures until cancelled; a failure does not end the leadership."""
        try:
            await keep_running("schedules", self._work, failed=self._telemetry.work_failed)
        finally:
            self._storage.close()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            schedules = self._follow(group, SCHEDULES, self._schedules)
            # Runs and captures are followed only if there is a schedule.
            while not self._schedules:  # noqa: ASYNC110 - the informer fills it
                await asyncio.sleep(self._look_s)
            runs = self._follow(group, RUNS, self._runs, fields=f"status.phase={MLRunPhase.ACTIVE}")
            captures = self._follow(group, CONNECTIONS, self._captures, labels=SCHEDULE_LABEL)
            while True:
                states = [*_states(schedules), *_states(runs), *_states(captures)]
                if self._accepting and all(state in _READY for state in states):
                    self._look(group)
                await asyncio.sleep(self._look_s)

    def _follow(
        self,
        group: asyncio.TaskGroup,
        resource: Resource,
        store: ProjectedStore[T],
        *,
        labels: str = "",
        fields: str = "",
    ) -> list[Informer[ProjectedStore[T]]]:
        informers = [
            Informer(
                f"{resource.plural} of schedules",
                [path_to(*resource.gvr, namespace=namespace)],
                cluster=self._cluster,
                store=store.part(namespace),
                metrics=NoInformerMetrics(),
                backoff=Backoff(),
                selection=Selection(labels=labels, fields=fields, metadata_only=False),
            )
            for namespace in self._namespaces
        ]
        for informer in informers:
            group.create_task(informer.run())
        return informers

    def _look(self, group: asyncio.TaskGroup) -> None:
        """Begin a look at each namespace that is due; they do not wait for each other."""
        now, namespaces = asyncio.get_running_loop().time(), self._schedules.namespaces
        for namespace in namespaces:
            if namespace not in self._looking and now >= self._next_look.get(namespace, 0.0):
                task = self._looking[namespace] = group.create_task(self._look_at(namespace))
                task.add_done_callback(partial(self._end_look, namespace))
        uids = {each.body.metadata.uid for namespace in namespaces for each in self._schedules.of(namespace)}
        self._works = {uid: work for uid, work in self._works.items() if uid in uids}
        for kept in (self._readings, self._next_look):
            for namespace in kept.keys() - set(namespaces):
                del kept[namespace]

    def _end_look(self, namespace: str, look: asyncio.Task[float]) -> None:
        del self._looking[namespace]
        if not look.cancelled() and look.exception() is None:
            self._next_look[namespace] = asyncio.get_running_loop().time() + LOOK_SHARE * look.result()

    async def _look_at(self, namespace: str) -> float:
        """Look at the schedules of a namespace; return the seconds of the decisions."""
        decided_s = 0.0
        async with self._slots:
            schedules = sorted(self._schedules.of(namespace), key=_age)
            current = {each.body.metadata.uid: each for each in schedules}
            captures: dict[str, list[AutomaticCapture]] = {}
            for capture in self._captures.of(namespace):
                captures.setdefault(capture.schedule, []).append(capture)
            runs, now = self._runs.of(namespace), self._clock().timestamp()
            of_namespace = self._readings.setdefault(namespace, NamespaceReadings(namespace, self._exchange))
            of_namespace.keep_only(runs)
            readings = of_namespace.at(now)
            for number, stored in enumerate(schedules):
                if not self._accepting:
                    break
                uid = stored.body.metadata.uid
                work = self._work_of(uid)
                try:
                    current[uid] = await work.step(
                        stored,
                        runs=runs,
                        readings=readings,
                        captures=captures.get(uid, []),
                        others=partial(_entries, current, uid),
                        is_admitted=number < self._most,
                        now=self._clock().timestamp(),
                    )
                except ScheduleChanged:
                    pass  # the informer delivers the other version
                except ClusterError as error:
                    _log.warning(
                        "Schedule %(namespace)s/%(object)s is looked at again later: %(error)s",
                        {"namespace": namespace, "object": stored.body.metadata.name, "error": error},
                    )
                decided_s += work.decided_s
                await asyncio.sleep(0)
        return decided_s

    def _work_of(self, uid: str) -> ScheduleWork:
        if uid not in self._works:
            counted = self._telemetry.automatic_capture
            self._works[uid] = ScheduleWork(self._writer, self._artifacts, self._limits, counted)
        return self._works[uid]


def _states(informers: Sequence[Informer[ProjectedStore[T]]]) -> list[SyncState]:
    return [each.state for each in informers]


def _age(stored: StoredSchedule) -> tuple[Any, str]:
    created = stored.body.metadata.creation_timestamp
    return (created is not None and created.timestamp()) or 0.0, stored.body.metadata.name


def _entries(schedules: Mapping[str, StoredSchedule], uid: str) -> list[ScheduledCapture]:
    """Return the records of all schedules but one."""
    others = (each.body.status for other, each in schedules.items() if other != uid)
    return [capture for status in others if status is not None for capture in status.captures or ()]
