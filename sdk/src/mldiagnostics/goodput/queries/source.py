"""The log of one job: located, read incrementally, and stored between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError, LogMissing
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import find_log, open_log
from mldiagnostics.goodput.log.callback_log import CallbackLog
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.snapshots import copies as snapshot_copies
from mldiagnostics.goodput.snapshots.snapshot import snapshot_path
from mldiagnostics.goodput.snapshots.stored_history import StoredHistory
from mldiagnostics.goodput.written_logs import flush_written

if TYPE_CHECKING:
    import os
    from datetime import timedelta
    from pathlib import Path

    from mldiagnostics.goodput.log import Log


class LogSource:
    """Reads the log of `given`, of `log`, or of the two names.

    Arguments and errors are those of `GoodputCalculator`.
    """

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        *,
        given: Any = None,
        log: str | os.PathLike[str] | None = None,
        retention: timedelta | None = None,
        cache_dir: str | os.PathLike[str] = "/tmp",  # noqa: S108 - the peer's default
        gcs_path: str | None = None,
        live: bool = False,
    ) -> None:
        for name, value in (("job_name", job_name), ("logger_name", logger_name)):
            if not isinstance(value, str):
                raise TypeError(f"{name}={value!r}: not a string; pass the {name} of the recorder")
            if not value:
                raise ConfigurationError(f"{name}: empty; pass the {name} of the recorder")
        if given is not None and log is not None:
            raise ConfigurationError("cloud_logger, log: both name a log; pass only one of them")
        self.job_name = job_name
        self._given = given
        self._live = live
        self._names = job_name, logger_name, log
        self._url = "" if given is not None else find_log(*self._names)
        self._retention = retention
        self._log = self._open(retention)
        self._gcs_path = gcs_path
        self._cache_dir = cache_dir
        self._stored: StoredHistory | None = None
        """The history that was read, once the log is located."""

    @property
    def name(self) -> str:
        """Name of the log in messages."""
        return self._log.name

    @property
    def history(self) -> History:
        """The history that was read so far."""
        return History() if self._stored is None else self._stored.history

    def read(self, now: float) -> History:
        """Return the history up to `now` (POSIX seconds). Raises `LogUnreadable`."""
        try:
            return self._ready().read(now)
        except LogMissing:
            self._stored = None  # the next query tries all places again
            raise

    def sync(self) -> None:
        """Store the history, and a copy below `gcs_path`; failures are only warned about."""
        if self._stored is None or self._given is not None or not self._gcs_path:
            return
        if self._stored.keep():
            snapshot_copies.keep([self._snapshot()], self._gcs_path)

    def _ready(self) -> StoredHistory:
        """Locate the log if it is not known yet, and flush this process's own records."""
        stored = self._locate() if self._stored is None else self._stored
        self._stored = stored
        if self._given is None:
            flush_written(self._url)
        return stored

    def _locate(self) -> StoredHistory:
        """Locate the log, and continue where an earlier process stopped reading."""
        if self._given is not None:
            return StoredHistory(self._log, None)
        self._url = search_log(*self._names)
        self._log = self._open(self._retention)
        if self._gcs_path:
            snapshot_copies.fetch([self._snapshot()], self._gcs_path)
        return StoredHistory(self._log, self._snapshot())

    def _snapshot(self) -> Path:
        return snapshot_path(self._cache_dir, self._log, job_name=self.job_name)

    def _open(self, retention: timedelta | None) -> Log:
        if self._given is not None:
            return CallbackLog(self._given, job_name=self.job_name, retention=retention, live=self._live)
        return open_log(self._url, job_name=self.job_name, retention=retention)
