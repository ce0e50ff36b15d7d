"""Goodput logs: located by the rule of `goodput.location`, and read incrementally."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.goodput.location import CLOUD_LOGGING, log_locations
from mldiagnostics.goodput.written_logs import written_log
from mldiagnostics.lifecycle.current_run import current as current_run
from mldiagnostics.locations import is_bucket

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.events.listener import EventListener
    from mldiagnostics.goodput.location import LogLocation
    from mldiagnostics.goodput.log.lines import LoggedPayload


class Log(Protocol):
    """A log that is read incrementally, by one thread at a time."""

    @property
    def name(self) -> str:
        """Path or URL of the log in messages, or `Cloud Logging <project>/<logger>`."""

    @property
    def jobs(self) -> Collection[str]:
        """Names of the jobs in the log; empty for the log of a run."""

    def read_new(self, history: EventListener, now: datetime) -> None:
        """Add the events since the last call to a history.

        Invalid lines are counted in `history.ignored`. Raises `LogUnreadable` if the log is missing or cannot be read.
        """

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:
        """Yield the payloads of the whole log up to `now`. Raises as `read_new`."""

    def exists(self) -> bool:
        """Return whether the log exists; logs of a service always do.

        Raises `LogUnreadable` if that is unknown.
        """

    def position(self) -> dict[str, object]:
        """Return the position up to which the log was read, as JSON types."""

    def resume(self, position: dict[str, object]) -> None:
        """Continue at a position. Raises `ValueError` if it is not one of this log."""


def find_log(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> str:
    """Return the path or URL from which a job's log is read.

    It is `log`, else the log that a recorder of this process writes, also if a run has started or ended since, else the
    location by the rule of `goodput.location`.
    """
    return (None if log else written_log(job_name, logger_name)) or log_location(job_name, logger_name, log)


def log_location(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> str:
    """Return the absolute path or URL to which a job's log is written."""
    return absolute(known_locations(job_name, logger_name, log)[0].url)


def known_locations(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> list[LogLocation]:
    """Return the locations that the rule gives for a job's log, the writer's first."""
    run = current_run()
    return log_locations(
        log=None if log is None else os.fspath(log),
        logger_name=logger_name,
        job_name=job_name,
        env=os.environ,
        run_storage=None if run is None else run.storage,
    )


def absolute(location: str, directory: str = "") -> str:
    """Return an absolute path, from the working directory or another, or a URL."""
    if "://" in location or location.startswith(CLOUD_LOGGING):
        return location
    path = os.path.join(directory, os.path.expanduser(location))  # noqa: PTH111, PTH118 - the result is a string
    return os.path.abspath(path)  # noqa: PTH100 - the same


def open_log(url: str | os.PathLike[str], *, job_name: str | None = None, retention: timedelta | None = None) -> Log:
    """Return the reader of a log; it opens nothing before its first read.

    Args:
        url: A path, `file:///…`, the URL of a bucket or `cloud-logging:…`: the directory of a log or of a run, or a
            file of JSON lines, such as a cache of ml-goodput-measurement.
        job_name: The job whose events are read; None reads all.
        retention: How far back a log of Cloud Logging is read at first; None reads all of it.

    Raises:
        ConfigurationError: The URL has another form.
        MissingExtraError: An extra that the log needs is not installed.
    """
    location = os.fspath(url)
    if location.startswith(CLOUD_LOGGING):
        from mldiagnostics.goodput.log.cloud_logging import CloudLoggingLog  # noqa: PLC0415 - only such logs need it

        return CloudLoggingLog(location, retention=retention)
    if is_bucket(location):
        from mldiagnostics.goodput.log.stored import StoredLog  # noqa: PLC0415 - only such logs need it

        return StoredLog(location, job_name=job_name)
    from mldiagnostics.goodput.log.jsonl import LocalLog  # noqa: PLC0415 - only such logs need it

    return LocalLog(location, job_name=job_name)
