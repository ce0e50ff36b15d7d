"""Looks at every run now and then.

Time alone makes hosts silent, and not every change has an event.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.apiserver import ClusterError

from mldiagnostics_operator.runs.run_watch import CHECK_S
from mldiagnostics_operator.runs.telemetry import RaisedSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mldiagnostics_operator.control_plane.table import ReportTable
    from mldiagnostics_operator.runs.adoption import RunAdoption
    from mldiagnostics_operator.runs.observer import RunObserver
    from mldiagnostics_operator.runs.queue_watches import QueueWatches
    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.runs.run_book import RunBook
    from mldiagnostics_operator.runs.run_watch import RunWatch
    from mldiagnostics_operator.runs.workload_watches import WorkloadWatches
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

RESYNC_S: Final = 10.0
"""Pause between two looks at runs that no watch delivers, and at hosts that may have become silent."""


class RunResync:
    """Looks at all runs in turns.

    Args:
        book: The runs in memory.
        objects: The watch of the runs.
        watches: The watches of workloads.
        adoption: Reads workloads that no watch delivers.
        observer: Searches for the pods that a run lacks.
        queues: Kueue's Workloads.
        reports: Reports of processes.
        changed: Receives each run.
        telemetry: Metrics of the operator.
    """

    def __init__(
        self,
        book: RunBook,
        objects: RunWatch,
        watches: WorkloadWatches,
        *,
        adoption: RunAdoption,
        observer: RunObserver,
        queues: QueueWatches,
        reports: ReportTable,
        changed: Callable[[Run], None],
        telemetry: OperatorMetrics,
    ) -> None:
        self._book = book
        self._objects = objects
        self._watches = watches
        self._adoption = adoption
        self._observer = observer
        self._queues = queues
        self._reports = reports
        self._changed = changed
        self._telemetry = telemetry

    async def run(self) -> None:
        """Look at the runs until cancelled."""
        while not self._watches.settled:  # noqa: ASYNC110 - before, an absent workload may only be late
            await asyncio.sleep(CHECK_S)
        while True:
            for run in self._book.runs:
                await self._look_at(run)
            await self._adoption.add_reported(self._reports)
            self._queues.follow({run.meta.namespace for run in self._book.runs if _has_queue(run)})
            self._telemetry.runs.followed(len(self._book.unfinished), left_out=self._watches.left_out)
            self._telemetry.runs.signals([each for run in self._book.runs for each in _raised(run)])
            accounts = (run.status.goodput for run in self._book.runs if not run.finished)
            self._telemetry.runs.time([account for account in accounts if account is not None])
            await asyncio.sleep(RESYNC_S)
            if not self._objects.installed:
                await self._objects.until_installed()
                self._watches.report_all()

    async def _look_at(self, run: Run) -> None:
        if run.workload is not None and not (run.watched or run.gone or run.finished) and run in self._book:
            try:
                await self._adoption.read_again(run)
            except ClusterError as error:
                _log.debug("The workload of %s/%s cannot be read: %s", *run.key, error)
        if run.observed is not None and not run.finished and run in self._book:
            self._observer.search(run.pods_key, run.status.attempt or 0, run.observed)
        self._changed(run)


def _has_queue(run: Run) -> bool:
    state = run.observed.state if run.observed and not run.finished else None
    return state is not None and bool(state.queue)


def _raised(run: Run) -> Iterator[RaisedSignal]:
    for signal, state in run.signals.items():
        if state.raised:
            yield RaisedSignal(state.changed or 0.0, *run.key, signal)
