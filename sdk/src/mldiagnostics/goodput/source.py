"""The log of one job, as the calculator reads it: found, opened, read by what is new, and kept between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError, LogMissing
from mldiagnostics.goodput import snapshot_copies
from mldiagnostics.goodput.history import History
from mldiagnostics.goodput.log import find_log, open_log
from mldiagnostics.goodput.log.callback_log import CallbackLog
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.log.snapshot import snapshot_path
from mldiagnostics.goodput.stored_history import KeptHistory
from mldiagnostics.goodput.written_logs import flush_written

if TYPE_CHECKING:
    import os
    from datetime import timedelta
    from pathlib import Path

    from mldiagnostics.goodput.log import Log

__all__ = ["LogSource"]


class LogSource:
    """Reads the log of `given`, of `log`, or that of the two names. Raises as `GoodputCalculator` says."""

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
                raise TypeError(f"{name}={value!r} is no text: give the {name} that the recorder was given")
            if not value:
                raise ConfigurationError(f"{name} is empty: give the {name} that the recorder was given")
        if given is not None and log is not None:
            raise ConfigurationError("both cloud_logger= and log= name a log: give one")
        self.job_name = job_name
        self._given = given
        self._live = live
        self._names = job_name, logger_name, log
        self._url = "" if given is not None else find_log(*self._names)
        self._retention = retention
        self._log = self._opened(retention)
        self._gcs_path = gcs_path
        self._cache_dir = cache_dir
        self._kept: KeptHistory | None = None
        """What was read, once the log is found."""

    @property
    def name(self) -> str:
        """What people are told was read."""
        return self._log.name

    @property
    def history(self) -> History:
        """What was read so far."""
        return History() if self._kept is None else self._kept.history

    def read(self, now: float) -> History:
        """Return the history of everything logged until now (POSIX seconds). Raises `LogUnreadable`."""
        try:
            return self._ready().read(now)
        except LogMissing:
            self._kept = None  # the next query looks at all places again
            raise

    def sync(self) -> None:
        """Keep what was read, also below `gcs_path`; what fails is only told. The log of an object is not kept."""
        if self._kept is None or self._given is not None or not self._gcs_path:
            return
        if self._kept.keep():
            snapshot_copies.keep([self._place()], self._gcs_path)

    def _ready(self) -> KeptHistory:
        """Find the log at the first query, and have in it what this process recorded before any. Raises as `read`."""
        kept = self._begun() if self._kept is None else self._kept
        self._kept = kept
        if self._given is None:
            flush_written(self._url)
        return kept

    def _begun(self) -> KeptHistory:
        """Find the log, and go on where an earlier process ended, here or elsewhere."""
        if self._given is not None:
            return KeptHistory(self._log, None)
        self._url = search_log(*self._names)
        self._log = self._opened(self._retention)
        if self._gcs_path:
            snapshot_copies.fetch([self._place()], self._gcs_path)
        return KeptHistory(self._log, self._place())

    def _place(self) -> Path:
        return snapshot_path(self._cache_dir, self._log, job_name=self.job_name)

    def _opened(self, retention: timedelta | None) -> Log:
        if self._given is not None:
            return CallbackLog(self._given, job_name=self.job_name, retention=retention, live=self._live)
        return open_log(self._url, job_name=self.job_name, retention=retention)
