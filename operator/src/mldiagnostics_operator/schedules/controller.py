"""The controller of schedules: all in turn, namespace by namespace.

All that must last is in the status of the schedules. A leadership starts with lists of its own.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from mldiagnostics_api.names import SCHEDULE_LABEL, MLRunPhase
from mldiagnostics_api.reports.reported_run import RunKey
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES, Resource
from mldiagnostics_kube.cache.informer import Backoff, Informer, NoInformerMetrics, Selection, SyncState
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.process.clock import Clock, utc_now

from mldiagnostics_operator.schedules.artifacts import SessionArtifacts
from mldiagnostics_operator.schedules.projected_store import ProjectedStore
from mldiagnostics_operator.schedules.projections import (
    ActiveRun,
    AutomaticCapture,
    StoredSchedule,
    active_run,
    automatic_capture,
    current_sample,
    stored_schedule,
)
from mldiagnostics_operator.schedules.schedule_step import limits_of
from mldiagnostics_operator.schedules.schedule_work import ScheduleWork
from mldiagnostics_operator.schedules.writer import ScheduleChanged, ScheduleWriter
from mldiagnostics_operator.supervision import keep_running

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics_api.schedules.trigger_sample import TriggerSample
    from mldiagnostics_api.v1alpha1.schedule import ScheduledCapture
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

LOOK_S: Final = 5.0
"""Pause between two looks at all schedules."""
NAMESPACES: Final = 8
"""Namespaces whose schedules are worked on at the same time."""
_RESTART_S: Final = 10.0
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
        self._slots = asyncio.Semaphore(NAMESPACES)
        self._accepting = True
        self._idle = asyncio.Event()
        self._idle.set()

    def stop_accepting(self) -> None:
        """Begin no other look: the next leader does it."""
        self._accepting = False

    async def drain(self) -> None:
        """Return when no write is in progress."""
        await self._idle.wait()

    async def run(self) -> None:
        """Make captures until cancelled; a failure does not end the leadership."""
        try:
            await keep_running("schedules", self._work, failed=self._telemetry.work_failed, pause_s=_RESTART_S)
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
                    await self._look()
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

    async def _look(self) -> None:
        """Look at every schedule once; the namespaces do not wait for each other."""
        self._idle.clear()
        try:
            await asyncio.gather(*(self._look_at(namespace) for namespace in self._schedules.namespaces))
            uids = {each.body.metadata.uid for ns in self._schedules.namespaces for each in self._schedules.of(ns)}
            for uid in self._works.keys() - uids:
                del self._works[uid]
        finally:
            self._idle.set()

    async def _look_at(self, namespace: str) -> None:
        async with self._slots:
            schedules = sorted(self._schedules.of(namespace), key=_age)
            current = {each.body.metadata.uid: each for each in schedules}
            captures: dict[str, list[AutomaticCapture]] = {}
            for capture in self._captures.of(namespace):
                captures.setdefault(capture.schedule, []).append(capture)
            for number, stored in enumerate(schedules):
                if not self._accepting:
                    return
                uid = stored.body.metadata.uid
                others = [each for other in current if other != uid for each in _entries(current[other])]
                try:
                    current[uid] = await self._step(stored, number, captures.get(uid, []), others)
                except ScheduleChanged:
                    continue  # the informer delivers the other version
                except ClusterError as error:
                    _log.warning(
                        "Schedule %(namespace)s/%(object)s is looked at again later: %(error)s",
                        {"namespace": namespace, "object": stored.body.metadata.name, "error": error},
                    )
                await asyncio.sleep(0)

    async def _step(
        self,
        stored: StoredSchedule,
        number: int,
        captures: list[AutomaticCapture],
        others: list[ScheduledCapture],
    ) -> StoredSchedule:
        meta = stored.body.metadata
        work = self._works.setdefault(
            meta.uid,
            ScheduleWork(self._writer, self._artifacts, self._limits, self._telemetry.automatic_capture),
        )
        return await work.step(
            stored,
            runs=self._runs.of(meta.namespace),
            sample=self._sampler(meta.namespace),
            captures=captures,
            others=others,
            is_admitted=number < self._most,
            now=self._clock().timestamp(),
        )

    def _sampler(self, namespace: str) -> Callable[[ActiveRun], TriggerSample]:
        reports = self._exchange.reports

        def sample(run: ActiveRun) -> TriggerSample:
            return current_sample(run, reports.view(RunKey(namespace, run.run_id)) if reports else None)

        return sample


def _states(informers: Sequence[Informer[ProjectedStore[T]]]) -> list[SyncState]:
    return [each.state for each in informers]


def _age(stored: StoredSchedule) -> tuple[Any, str]:
    created = stored.body.metadata.creation_timestamp
    return (created is not None and created.timestamp()) or 0.0, stored.body.metadata.name


def _entries(stored: StoredSchedule) -> list[ScheduledCapture]:
    return list((stored.body.status and stored.body.status.captures) or ())
