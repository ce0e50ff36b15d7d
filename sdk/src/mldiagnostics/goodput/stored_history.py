"""The history of a log, read by what is new and kept for the next process."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mldiagnostics.goodput.history import History
from mldiagnostics.goodput.log.snapshot import keep, recall

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.goodput.log import Log

__all__ = ["KeptHistory"]

_WORTH_KEEPING_S = 1.0
"""What took longer to read is kept for the next process,"""

_KEEP_EVERY_S = 600.0
"""and not more often: a service may always take that long."""


class KeptHistory:
    """Reads a log into a history; with `snapshot`, from where the last process that read it ended."""

    def __init__(self, log: Log, snapshot: Path | None) -> None:
        self.log = log
        self._snapshot = snapshot
        self.history = (None if snapshot is None else recall(snapshot, log)) or History()
        self._keep_after = 0.0

    def read(self, now: float) -> History:
        """Return the history of everything logged until now (POSIX seconds). Raises `LogUnreadable`."""
        asked = time.monotonic()
        self.log.read_new(self.history, datetime.fromtimestamp(now, timezone.utc))
        done = time.monotonic()
        if self._snapshot is not None and done - asked > _WORTH_KEEPING_S and done > self._keep_after:
            self._keep_after = done + _KEEP_EVERY_S
            moment = round(now * 1e6)
            self.history.of(moment).account(moment)  # folded: the next process need not
            self.keep()
        return self.history

    def keep(self) -> bool:
        """Write the snapshot; false if there is no place for it, or the disk does not take it."""
        return self._snapshot is not None and keep(self._snapshot, self.log, self.history)
