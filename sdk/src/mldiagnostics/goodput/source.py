"""The log of one job, as the calculator reads it: found, opened, read by what is new, and kept between processes."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError, LogMissing
from mldiagnostics.goodput import copies
from mldiagnostics.goodput.history import History
from mldiagnostics.goodput.log import find_log, open_log
from mldiagnostics.goodput.log.given import GivenLog
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.log.snapshot import keep, recall, snapshot_path
from mldiagnostics.goodput.outlet import flush_written

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from mldiagnostics.goodput.log import Log
    from mldiagnostics.goodput.log.lines import Told

__all__ = ["Source"]


_WORTH_KEEPING_S = 1.0
"""What took longer to read is kept for the next process,"""

_KEEP_EVERY_S = 600.0
"""and not more often: a service may always take that long."""


class Source:
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
        self._job_name = job_name
        self._given = given
        self._live = live
        self._names = job_name, logger_name, log
        self._url = "" if given is not None else find_log(*self._names)
        self._retention = retention
        self._log = self._opened(retention)
        self._gcs_path = gcs_path
        self._cache_dir = cache_dir
        self._snapshot: Path | None = None
        self._begun = False
        self._keep_after = 0.0
        self.history = History()

    @property
    def name(self) -> str:
        """What people are told was read."""
        return self._log.name

    def read(self, now: float) -> History:
        """Return the history of everything logged until now (POSIX seconds). Raises `LogUnreadable`."""
        self._get_ready()
        asked = time.monotonic()
        try:
            self._log.read_new(self.history, _moment(now))
        except LogMissing:
            self._begun = False  # the next query looks at all places again
            raise
        done = time.monotonic()
        if self._snapshot is not None and done - asked > _WORTH_KEEPING_S and done > self._keep_after:
            self._keep_after = done + _KEEP_EVERY_S
            self.history.of(round(now * 1e6)).account(round(now * 1e6))  # folded: the next process need not
            keep(self._snapshot, self._log, self.history)
        return self.history

    def sync(self) -> None:
        """Keep what was read, also below `gcs_path`; what fails is only told. The log of an object is not kept."""
        if self._snapshot is None or not self._gcs_path or not self._begun:
            return
        if keep(self._snapshot, self._log, self.history):
            copies.keep([self._snapshot], self._gcs_path)

    def between(self, start: float | None, end: float) -> list[Mapping[str, Any]]:
        """Return the payloads logged after `start` and not after `end`, in the order in which they came.

        Where several processes tell of the job, the first one is believed, but for checkpoints.
        """
        self._get_ready()
        log = self._log if start is None else self._opened(timedelta(seconds=end - start))
        told = [(each.payload, _rank(each)) for each in log.payloads(_moment(end)) if _within(each.logged, start, end)]
        first = min((rank for _, rank in told), default=0)
        return [payload for payload, rank in told if rank == first or "event_type" in payload]

    def _get_ready(self) -> None:
        """Find the log at the first query, and have in it what this process recorded before any. Raises as `read`."""
        if self._given is not None:
            return
        if not self._begun:
            self._begin()
        flush_written(self._url)

    def _begin(self) -> None:
        """Find the log, and go on where an earlier process ended, here or elsewhere."""
        self._url = search_log(*self._names)
        self._log = self._opened(self._retention)
        self._begun = True
        self._snapshot = snapshot_path(self._cache_dir, self._log, job_name=self._job_name)
        if self._gcs_path:
            copies.fetch([self._snapshot], self._gcs_path)
        self.history = recall(self._snapshot, self._log) or self.history

    def _opened(self, retention: timedelta | None) -> Log:
        if self._given is not None:
            return GivenLog(self._given, job_name=self._job_name, retention=retention, live=self._live)
        return open_log(self._url, job_name=self._job_name, retention=retention)


def _moment(t: float) -> datetime:
    return datetime.fromtimestamp(t, timezone.utc)


def _rank(told: Told) -> int:
    rank = told.payload.get("rank")
    return rank if isinstance(rank, int) else told.rank


def _within(logged: float | None, start: float | None, end: float) -> bool:
    return logged is None or ((start is None or start < logged) and logged <= end)
