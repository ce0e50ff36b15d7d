"""Goodput logs, wherever they are: found by the rule of `goodput.location`, read by what is new in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.goodput.location import CLOUD_LOGGING, log_places
from mldiagnostics.goodput.written_logs import written_log
from mldiagnostics.lifecycle.current_run import current as current_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.listener import EventListener
    from mldiagnostics.goodput.location import LogPlace
    from mldiagnostics.goodput.log.lines import LoggedPayload

__all__ = ["Log", "absolute", "find_log", "known_places", "open_log", "place_log"]


class Log(Protocol):
    """A log that is read again and again. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """What people are told was read: a path or URL, or `Cloud Logging <project>/<logger>`."""

    @property
    def jobs(self) -> Collection[str]:
        """Names of jobs that it tells of as if they were one: none for a run's, which may be told by any name."""

    def read_new(self, history: EventListener, now: datetime) -> None:
        """Feed all that is new since the last call; lines that cannot be read count in `history.ignored`.

        Raises `LogUnreadable` if the log is missing or may not be read.
        """

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:
        """Yield all that the log holds from its beginning to `now`, as it was logged. Raises as `read_new` does."""

    def exists(self) -> bool:
        """Tell whether there is a log. Raises `LogUnreadable` if that is unknown; a service always has one."""

    def position(self) -> dict[str, object]:
        """Return how far it was read, as JSON can say it."""

    def resume(self, position: dict[str, object]) -> None:
        """Go on from there. Raises `ValueError` if that is no position in this log."""


def find_log(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> str:
    """Return where a job's log is read: as named by `log`, else where a recorder of this process writes, else by rule.

    So it is found also where a run began after the recorder did, or is over.
    """
    return (None if log else written_log(job_name, logger_name)) or place_log(job_name, logger_name, log)


def place_log(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> str:
    """Return the path from the root, or the URL, to which a job's log is written: named by `log`, else by the rule."""
    return absolute(known_places(job_name, logger_name, log)[0].url)


def known_places(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> list[LogPlace]:
    """Return where the rule allows a job's log to be, by `log`, environment and run; the place of a writer first."""
    run = current_run()
    return log_places(
        log=None if log is None else os.fspath(log),
        logger_name=logger_name,
        job_name=job_name,
        env=os.environ,
        run_storage=None if run is None else run.storage,
    )


def absolute(place: str) -> str:
    """Return a path from the root, and a URL as it is."""
    if "://" in place or place.startswith(CLOUD_LOGGING):
        return place
    return os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111 - keeps it a text


def open_log(url: str | os.PathLike[str], *, job_name: str | None = None, retention: timedelta | None = None) -> Log:
    """Return the reader of a log; nothing is touched until it reads.

    `url` is a path, `file:///…`, `gs://…` or `cloud-logging:…`: the directory of a log or of a run, or a single file of
    JSON lines, ours or the peer's cache. With `job_name`, what a log tells of other jobs is passed over. `retention`
    is how far back a log of Cloud Logging is read at first.

    Raises `ConfigurationError` for any other URL and `MissingExtraError` if what it needs is not installed.
    """
    place = os.fspath(url)
    if place.startswith(CLOUD_LOGGING):
        from mldiagnostics.goodput.log.cloud_logging import CloudLoggingLog  # noqa: PLC0415 - who has such a log

        return CloudLoggingLog(place, retention=retention)
    if place.startswith("gs://"):
        from mldiagnostics.goodput.log.stored import StoredLog  # noqa: PLC0415 - who has such a log

        return StoredLog(place, job_name=job_name)
    from mldiagnostics.goodput.log.jsonl import LocalLog  # noqa: PLC0415 - who has such a log

    return LocalLog(place, job_name=job_name)
