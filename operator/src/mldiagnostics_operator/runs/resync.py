"""Reconciles every run now and then.

Time alone makes hosts silent, and not every change has an event.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mldiagnostics_operator.runs.keys import ReportKey
from mldiagnostics_operator.runs.telemetry import RaisedSignal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.runs.cleanup.ended_runs import EndedRuns
    from mldiagnostics_operator.runs.creation import RunCreation
    from mldiagnostics_operator.runs.reconciler import RunReconciler
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.telemetry import OperatorMetrics

RESYNC_S: Final = 10.0
"""Pause between two looks at runs that no watch delivers, and at hosts that may have become silent."""


class RunResync:
    """Adds the keys of all runs in turns.

    Args:
        reconciler: The runs in memory, their watches and the queue.
        creation: Knows which reports need an object.
        reports: Reports of processes.
        ended: Runs after their end.
        telemetry: Metrics of the operator.
    """

    def __init__(
        self,
        reconciler: RunReconciler,
        creation: RunCreation,
        reports: ReportTable,
        ended: EndedRuns,
        telemetry: OperatorMetrics,
    ) -> None:
        self._reconciler = reconciler
        self._runs, self._queue, self._watches = reconciler.runs, reconciler.queue, reconciler.watches
        self._creation = creation
        self._reports = reports
        self._ended = ended
        self._telemetry = telemetry

    async def run(self) -> None:
        """Add keys until cancelled."""
        await self._watches.workloads.until_settled()
        while True:
            self._add_all()
            self._forget_ended()
            self._report_metrics()
            await asyncio.sleep(RESYNC_S)
            if not self._watches.runs.installed:
                await self._watches.runs.until_installed()
                self._watches.workloads.report_all()

    def _add_all(self) -> None:
        self._creation.count_reported()
        for run in self._runs.all:
            run.is_current = False
            if run.observed is not None and not run.finished:
                self._watches.pods.search(run.pods_key, run.status.attempt or 0, run.observed)
            self._queue.add(run.key)
        for key in self._reports.runs():
            if self._creation.unrecorded(key):
                self._queue.add(ReportKey(key))
        self._watches.queues.follow({run.meta.namespace for run in self._runs.all if _has_queue(run)})

    def _forget_ended(self) -> None:
        for run in self._ended.take_expired(now_s=asyncio.get_running_loop().time()):
            if run.finished and run in self._runs:
                self._reconciler.forget(run)

    def _report_metrics(self) -> None:
        runs = self._runs.all
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
