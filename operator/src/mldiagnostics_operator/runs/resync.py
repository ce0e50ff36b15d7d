"""Reconciles every run now and then.

Time alone makes hosts silent, and not every change has an event.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from math import ceil
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.runs.attempts import controller_attempt

from mldiagnostics_operator.runs.keys import ReportKey
from mldiagnostics_operator.runs.run import Run
from mldiagnostics_operator.runs.telemetry import RaisedSignal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.runs.cleanup.ended_runs import EndedRuns
    from mldiagnostics_operator.runs.creation import RunCreation
    from mldiagnostics_operator.runs.reconciler import RunReconciler
    from mldiagnostics_operator.runs.services import RunServices

RESYNC_S: Final = 10.0
"""Pause between two looks at runs that no watch delivers, and at hosts that may have become silent."""
RUNS_PER_S: Final = 200
"""A larger fleet than this allows has longer pauses."""
RUNS_OF_SLICE: Final = 100
"""Runs that are added at a time: about 2 ms of work."""


class RunResync:
    """Adds the keys of all runs in turns.

    Args:
        reconciler: The runs in memory, their watches and the queue.
        creation: Knows which reports need an object.
        reports: Reports of processes.
        ended: Runs after their end.
        services: The edges of the leadership.
    """

    def __init__(
        self,
        reconciler: RunReconciler,
        creation: RunCreation,
        reports: ReportTable,
        ended: EndedRuns,
        services: RunServices,
    ) -> None:
        self._reconciler = reconciler
        self._runs, self._queue, self._watches = reconciler.runs, reconciler.queue, reconciler.watches
        self._creation = creation
        self._reports = reports
        self._ended = ended
        self._telemetry, self._rate = services.telemetry, services.rate

    async def run(self) -> None:
        """Add keys until cancelled."""
        await self._watches.workloads.until_settled()
        while True:
            self._forget_ended()
            self._report_metrics()
            await self._add_all()
            if not self._watches.runs.installed:
                await self._watches.runs.until_installed()
                self._watches.workloads.report_all()

    async def _add_all(self) -> None:
        """Add the keys of all runs, spread over the time until the next look."""
        self._creation.count_reported()
        runs, reported = self._runs.all, self._reports.runs()
        self._watches.queues.follow({run.meta.namespace for run in runs if _has_queue(run)})
        waiting: Iterator[Run | RunKey] = chain(runs, reported)
        pause_s = max(RESYNC_S, len(runs) / RUNS_PER_S)
        slices = max(1, ceil((len(runs) + len(reported)) / RUNS_OF_SLICE))
        for _ in range(slices):
            for each in islice(waiting, RUNS_OF_SLICE):
                self._add(each)
            await asyncio.sleep(pause_s / slices)

    def _add(self, each: Run | RunKey) -> None:
        if not isinstance(each, Run):
            if self._creation.unrecorded(each):
                self._queue.add(ReportKey(each))
        elif each in self._runs:
            each.is_current = False
            if each.observed is not None and not each.finished:
                self._watches.pods.search(each.pods_key, controller_attempt(each.status), each.observed)
            self._queue.add_after(each.key, 0.0)  # behind the news

    def _forget_ended(self) -> None:
        for run in self._ended.take_expired(now_s=asyncio.get_running_loop().time()):
            if run.finished and run in self._runs:
                self._reconciler.forget(run)

    def _report_metrics(self) -> None:
        runs = self._runs.all
        self._rate.serve(max(len(self._runs.unfinished), len(self._reports.runs())))  # some have no object yet
        self._telemetry.runs.followed(len(self._runs.unfinished), left_out=self._watches.workloads.left_out)
        self._telemetry.runs.signals([each for run in runs for each in _raised(run)])
        accounts = (run.status.goodput for run in runs if not run.finished)
        self._telemetry.runs.time([account for account in accounts if account is not None])


def _has_queue(run: Run) -> bool:
    state = run.observed.state if run.observed and not run.finished else None
    return state is not None and bool(state.queue)


def _raised(run: Run) -> Iterator[RaisedSignal]:
    for signal, state in run.signals.items():
        if state.raised:
            yield RaisedSignal(state.changed or 0.0, run.key.namespace, run.key.name, signal)
