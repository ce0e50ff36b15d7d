"""The log of a job as the monitor's process reads it: what is new since the last time, folded into one history.

Every few minutes what was read is kept for the next process, in a snapshot that is this monitor's own, so that what it
holds of steps has been told. Now and then a copy of it goes into a bucket, for the next machine.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from mldiagnostics.goodput import snapshot_copies
from mldiagnostics.goodput.account import StepTimes
from mldiagnostics.goodput.history import History
from mldiagnostics.goodput.log import open_log, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.goodput.log import Log
    from mldiagnostics.goodput.monitor.assignment import Assignment
    from mldiagnostics.goodput.report.view import RunView

__all__ = ["KEEP_S", "LogFollower"]

KEEP_S = 300.0
"""How often what was read is kept."""


class LogFollower:
    """Opens the log with the first question, and asks for it again with the next where that is not possible."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._log: Log | None = None
        self._history = History()
        self._kept_at = self._copied_at = time.monotonic()
        self.told = StepTimes()
        """The steps that an earlier process of this monitor has told."""

    def view(self, now: int) -> RunView | None:
        """Return the newest run as of `now` (microseconds), None while the log tells of none.

        Raises `LogUnreadable`, `ConfigurationError` and `MissingExtraError`.
        """
        if self._log is None:
            self._log = self._opened(now)
        self._log.read_new(self._history, datetime.fromtimestamp(now / 1e6, timezone.utc))
        return self._newest(now)

    def keep(self, *, at_once: bool = False) -> None:
        """Keep what was read, if it is time to."""
        asked, now = self._assignment, time.monotonic()
        if self._log is None or not (at_once or now >= self._kept_at + KEEP_S):
            return
        self._kept_at = now
        place = self._place(self._log)
        well = snapshot.keep(place, self._log, self._history)
        if well and asked.copies and (at_once or now >= self._copied_at + asked.copy_interval_s):
            self._copied_at = now
            snapshot_copies.keep([place], asked.copies)

    def _opened(self, now: int) -> Log:
        asked = self._assignment
        retention = None if asked.retention_s is None else timedelta(seconds=asked.retention_s)
        log = open_log(asked.log, job_name=asked.job, retention=retention)
        if asked.copies:
            snapshot_copies.fetch([self._place(log)], asked.copies)
        self._history = snapshot.recall(self._place(log), log) or self._history
        view = self._newest(now)
        self.told = view.step_times(now) if view is not None else self.told
        return log

    def _newest(self, now: int) -> RunView | None:
        newest = self._history.of(now)
        return newest if newest.first_event is not None and newest.first_event <= now else None

    def _place(self, log: Log) -> Path:
        asked = self._assignment
        return snapshot.snapshot_path(asked.cache_dir, log, job_name=f"{asked.job}\0monitor\0{asked.tensorboard}")
