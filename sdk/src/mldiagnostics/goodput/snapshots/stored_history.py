"""The history of a log, read incrementally and stored for the next process."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.snapshots.snapshot import keep, recall

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.goodput.log import Log


_SLOW_READ_S = 1.0
"""A history is stored after a read that took longer."""

_STORE_INTERVAL_S = 600.0
"""The least time between two such stores: every read of a slow service may take that long."""


class StoredHistory:
    """Reads a log into a history, starting from a snapshot if there is one."""

    def __init__(self, log: Log, snapshot: Path | None) -> None:
        self.log = log
        self._snapshot = snapshot
        self.history = (None if snapshot is None else recall(snapshot, log)) or History()
        self._store_after = 0.0

    def read(self, now: float) -> History:
        """Return the history up to `now` (POSIX seconds). Raises `LogUnreadable`."""
        started = time.monotonic()
        self.log.read_new(self.history, datetime.fromtimestamp(now, timezone.utc))
        done = time.monotonic()
        if self._snapshot is not None and done - started > _SLOW_READ_S and done > self._store_after:
            self._store_after = done + _STORE_INTERVAL_S
            moment = round(now * 1e6)
            self.history.of(moment).account(moment)  # the next process loads the computed account
            self.keep()
        return self.history

    def keep(self) -> bool:
        """Write the snapshot; return false without a path for it or if that fails."""
        return self._snapshot is not None and keep(self._snapshot, self.log, self.history)
