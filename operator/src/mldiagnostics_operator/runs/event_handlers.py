"""Maps each event about a run to the key under which it is reconciled."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_operator.control_plane.memory.run_memory import Change
from mldiagnostics_operator.runs.keys import ObjectKey, ReportKey, WorkloadKey
from mldiagnostics_operator.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.runs.cleanup.deletion import RunDeletions
    from mldiagnostics_operator.runs.keys import Key
    from mldiagnostics_operator.runs.run_index import RunIndex
    from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords
    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey
    from mldiagnostics_operator.workqueue import Workqueue

_log: Final = logging.getLogger(__name__)


class RunEventHandlers:
    """Accepts the events of watches, reports and captures; no method waits.

    Args:
        runs: The runs in memory.
        queue: Receives the keys.
        deletions: Receive the objects, whose files may be deleted with them.
        records: Receive the runs whose attempts have changed.
    """

    def __init__(self, runs: RunIndex, queue: Workqueue[Key], deletions: RunDeletions, records: ClusterRecords) -> None:
        self._runs = runs
        self._queue = queue
        self._deletions = deletions
        self._records = records

    def on_run(self, body: Mapping[str, Any]) -> None:
        """Keep the newest version of an object.

        A status that this process has written is not news.
        """
        self._deletions.consider(body)
        metadata = body["metadata"]
        run = self._runs.get(ObjectKey(metadata["namespace"], metadata["name"]))
        if (
            run is not None
            and not run.deleted
            and (run.meta.uid, run.version) == (metadata["uid"], metadata["resourceVersion"])
        ):
            return
        try:
            newer = Run.of(body)
        except ValueError as error:
            _log.warning("A run cannot be read and is ignored: %(error)s", {"error": error})
            return
        if run is None or run.meta.uid != newer.meta.uid:
            self._runs.add(newer)
            self._records.note_first(newer)
        else:
            is_own = not run.deleted and run.has_written(newer)
            has_changed = run.status.attempts != newer.status.attempts
            run.absorb(newer)
            if has_changed:  # by a write whose response was lost
                self._records.note(run)
            if is_own:
                return
        self._queue.add(newer.key)

    def on_run_left(self, key: ObjectKey) -> None:
        """Note that an object was deleted, or has ended."""
        run = self._runs.get(key)
        if run is not None and not (run.finished and run.workload is not None):
            run.deleted = True
            self._queue.add(key)

    def on_workload(self, observed: ObservedWorkload, left: bool) -> None:
        """Note that a workload has changed, or left its watch."""
        run = self._runs.of_workload(observed.uid)
        if left and (run is None or run.finished):
            self._runs.note_deleted(observed.uid)
        elif run is None and not self._runs.has_ended(observed.uid):
            self._queue.add(WorkloadKey.of(observed))
        elif run is not None and not run.finished:
            run.is_current = run.is_current and not left
            self._queue.add(run.key)

    def on_queue(self, uid: str) -> None:
        """Note that Kueue has a new verdict about a workload."""
        run = self._runs.of_workload(uid)
        if run is not None and not run.finished:
            self._queue.add(run.key)

    def on_pods(self, key: LabelKey) -> None:
        """Note that pods of a run have changed."""
        run = self._runs.of_pods(key)
        if run is not None:
            self._queue.add(run.key)

    def on_report(self, key: RunKey, change: Change) -> None:
        """Note that a process has reported: few reports have news for people."""
        run = self._runs.of_report(key)
        if run is None:
            return
        if change is Change.PHASE:
            self._queue.add(run.key)
        else:
            self._queue.add_after(run.key, max(0.0, run.due_s - asyncio.get_running_loop().time()))

    def on_session(self, key: RunKey) -> None:
        """Note that a capture of a run has a session; the run may have ended."""
        run = self._runs.of_report(key)
        self._queue.add(ReportKey(key) if run is None else run.key)
