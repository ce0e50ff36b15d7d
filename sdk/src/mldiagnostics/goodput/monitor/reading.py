"""Incremental reading of the job's log into one history, with snapshots.

Every few minutes the history is saved in this monitor's own snapshot for the next process: its steps have been
exported. Less often the snapshot is copied into a bucket, for the next machine.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from mldiagnostics.goodput.exports.observe import ExportedSteps
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.snapshots import copies, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.goodput.log import Log
    from mldiagnostics.goodput.monitor.assignment import Assignment
    from mldiagnostics.goodput.report.view import RunView


SAVE_INTERVAL_S = 300.0
"""Seconds between snapshots."""


class LogFollower:
    """Follows the log; opens it on the first query, and retries on later ones."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._log: Log | None = None
        self._history = History()
        self._saved_at = self._copied_at = time.monotonic()
        self.exported = ExportedSteps()
        """Steps that this monitor has exported, in an earlier process too."""

    def view(self, now: int) -> RunView | None:
        """Return the newest run as of `now` (microseconds), None while the log has no run.

        Raises:
            LogUnreadable, ConfigurationError, MissingExtraError: the log cannot be read.
        """
        if self._log is None:
            self._log = self._open(now)
        self._log.read_new(self._history, datetime.fromtimestamp(now / 1e6, timezone.utc))
        return self._newest(now)

    def save(self, *, at_once: bool = False) -> None:
        """Save a snapshot and its copy if their intervals have passed."""
        assignment, now = self._assignment, time.monotonic()
        if self._log is None or not (at_once or now >= self._saved_at + SAVE_INTERVAL_S):
            return
        self._saved_at = now
        path = self._snapshot_path(self._log)
        stored = snapshot.keep(path, self._log, self._history)
        if stored and assignment.copies and (at_once or now >= self._copied_at + assignment.copy_interval_s):
            self._copied_at = now
            copies.keep([path], assignment.copies)

    def _open(self, now: int) -> Log:
        assignment = self._assignment
        retention = None if assignment.retention_s is None else timedelta(seconds=assignment.retention_s)
        log = open_log(assignment.log, job_name=assignment.job, retention=retention)
        if assignment.copies:
            copies.fetch([self._snapshot_path(log)], assignment.copies)
        self._history = snapshot.recall(self._snapshot_path(log), log) or self._history
        view = self._newest(now)
        if view is not None:
            self.exported = ExportedSteps(view.step_times(now))
        return log

    def _newest(self, now: int) -> RunView | None:
        newest = self._history.of(now)
        return newest if newest.first_event is not None and newest.first_event <= now else None

    def _snapshot_path(self, log: Log) -> Path:
        assignment = self._assignment
        return snapshot.snapshot_path(
            assignment.cache_dir, log, job_name=f"{assignment.job}\0monitor\0{assignment.tensorboard}"
        )
