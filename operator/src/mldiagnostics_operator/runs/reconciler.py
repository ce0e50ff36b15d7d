"""The reconciler of runs: gets what is known, decides the status, writes it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.runs.status import is_urgent, is_worth_writing
from mldiagnostics_api.workloads.kinds import LONE_POD
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NamespaceTerminating, NotFound, Unavailable

from mldiagnostics_operator.runs.keys import ReportKey, WorkloadKey
from mldiagnostics_operator.runs.status.next_status import next_status

if TYPE_CHECKING:
    from mldiagnostics_api.v1alpha1 import MLRunStatus
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.runs.cleanup.ended_runs import EndedRuns
    from mldiagnostics_operator.runs.creation import RunCreation
    from mldiagnostics_operator.runs.keys import Key
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.runs.run_index import RunIndex
    from mldiagnostics_operator.runs.status.inputs import InputReader
    from mldiagnostics_operator.runs.status.run_writer import RunWriter
    from mldiagnostics_operator.runs.watches.run_watches import RunWatches
    from mldiagnostics_operator.workqueue import Workqueue

_log: Final = logging.getLogger(__name__)

WORKERS: Final = 16
"""Each waits for the API server, about 0.2 s for a write where both share two cores: 8 stay below the limit."""
NEWS_WORKERS: Final = 8
"""Workers of runs with news alone: in a large fleet, the others wait for the limit on writes all the time."""
RETRY_S: Final = 1.0
"""Pause after a failure; a watch delivers a newer version of the object meanwhile."""
FAULT_RETRY_S: Final = 60.0
"""Pause after a failure that only a change by others mends: a quota, a policy, a permission; each one is logged."""


class RunReconciler:
    """Brings the status of every run up to date, one key at a time.

    Args:
        runs: The runs in memory.
        queue: The keys with work.
        watches: The objects of the cluster.
        inputs: Reads what decides a status.
        creation: Finds or creates the objects of runs.
        writer: Writes statuses.
        ended: Receives the runs that end.
        clock: Wall clock.
    """

    def __init__(
        self,
        runs: RunIndex,
        queue: Workqueue[Key],
        watches: RunWatches,
        *,
        inputs: InputReader,
        creation: RunCreation,
        writer: RunWriter,
        ended: EndedRuns,
        clock: Clock,
    ) -> None:
        self.runs: Final = runs
        self.queue: Final = queue
        self.watches: Final = watches
        self._inputs = inputs
        self._creation = creation
        self._writer = writer
        self._ended = ended
        self._clock = clock

    async def run(self) -> None:
        """Reconcile until cancelled, several keys at a time."""
        await self.watches.workloads.until_settled()  # before, an absent workload may only be late
        self._creation.note_listed()
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS + NEWS_WORKERS):
                group.create_task(self._work(news_only=number >= WORKERS))

    async def _work(self, *, news_only: bool) -> None:
        while True:
            key = await self.queue.get(news_only=news_only)
            try:
                await self.reconcile(key)
            except (Conflict, Unavailable) as error:
                _log.debug("run %(run)s: reconciled again: %(error)s", {"run": key.title, "error": error})
                self.queue.add_after(key, RETRY_S)
            except (ClusterError, ValueError) as error:
                is_final = isinstance(error, NamespaceTerminating)
                level = logging.DEBUG if is_final else logging.WARNING
                _log.log(level, "run %(run)s: cannot be reconciled: %(error)s", {"run": key.title, "error": error})
                if not is_final:
                    self.queue.add_after(key, FAULT_RETRY_S)
            except Exception:  # noqa: BLE001 - one object must not stop the runs of all others
                _log.exception("run %(run)s: cannot be reconciled", {"run": key.title})
                self.queue.add_after(key, FAULT_RETRY_S)
            finally:
                self.queue.done(key)

    async def reconcile(self, key: Key) -> None:
        """Do what a key needs now. Raises ClusterError."""
        if isinstance(key, WorkloadKey | ReportKey):
            await self._find(key)
            return
        run = self.runs.get(key)
        if run is None:
            return
        if run.deleted:
            self.forget(run)
            return
        inputs = await self._inputs.read(run)
        status, run.signals = next_status(run.status, inputs, self._clock())
        if is_worth_writing(run.status, status) and not self._is_postponed(run, status):
            await self._write(run, status)

    async def _find(self, key: WorkloadKey | ReportKey) -> None:
        """Find or create the object of a run, which is reconciled next."""
        if isinstance(key, ReportKey):
            reported = self._creation.unrecorded(key.run)
            run = await (self._creation.of_reports(reported) if reported else self._creation.of_ended(key.run))
        elif self.watches.runs.installed:
            run = self.runs.of_workload(key.uid) or await self._create(key)
        else:
            return  # every workload is reported again when the definition is served again
        if run is None:
            return
        if run.finished:
            self._ended.add(run, now_s=asyncio.get_running_loop().time())
        self.queue.add(run.key)

    async def _create(self, key: WorkloadKey) -> Run | None:
        """Create the run of a workload, as its watch delivered it last.

        None if it has none.
        """
        observed = self.watches.workloads.find(key.kind, key.namespace, key.name)
        if observed is None or observed.uid != key.uid:
            return None  # the one in its place has a key of its own
        run = await self._creation.of_workload(observed)
        if run is not None and key.kind is LONE_POD:
            run.opted_in_by = key
        return run

    def _is_postponed(self, run: Run, status: MLRunStatus) -> bool:
        """Return whether the status is written later, and add the key for then."""
        delay_s = run.due_s - asyncio.get_running_loop().time()
        if is_urgent(run.status, status):
            delay_s = -inf  # before all that is not
        if delay_s <= 0 and (run.status.phase is not status.phase or not self.queue.has_news(run.key.namespace)):
            return False
        self.queue.add_after(run.key, delay_s)  # changes of a phase may be among the news
        return True

    async def _write(self, run: Run, status: MLRunStatus) -> None:
        before = run.status.phase
        try:
            await self._writer.write(run, status)
        except NotFound:
            self.forget(run)
            return
        except Conflict:
            if run.finished:  # no watch delivers a newer version of it
                with suppress(ClusterError):
                    await self._writer.refresh(run)
            raise
        run.written_s = asyncio.get_running_loop().time()
        if before is not run.status.phase and run.finished and run.workload is not None:
            self.runs.note_end(run)
            self._ended.add(run, now_s=run.written_s)

    def forget(self, run: Run) -> None:
        """Forget a run; a workload that goes on without an object gets another one."""
        self.queue.drop(run.key)
        self.runs.remove(run)
        if not self.runs.has_pods(run.pods_key):  # another object may have the same run id
            self.watches.pods.forget(run.pods_key)
        if run.kind is None or run.workload is None or run.finished:
            return
        workload = self.watches.workloads.find(run.kind, run.meta.namespace, run.workload.name)
        for key in (WorkloadKey.of(workload) if workload else None, run.opted_in_by):
            if key is not None:
                self.queue.add(key)
