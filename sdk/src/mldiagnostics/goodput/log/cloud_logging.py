"""Logs of Cloud Logging, with the names and the filter of ml-goodput-measurement.

Reading needs the role roles/logging.viewer. Entries that a spool writes late are read by the time at which the service
received them; entries that become visible late are read because reads overlap.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import LogUnreadable
from mldiagnostics.extras import require
from mldiagnostics.goodput.events.payloads import RECORD_NAME
from mldiagnostics.goodput.location import cloud_log
from mldiagnostics.goodput.log.lines import LoggedPayload
from mldiagnostics.goodput.log.overlap import OverlapWindow
from mldiagnostics.pipeline.sink import SinkMaker
from mldiagnostics.sinks.spool import spooled
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from mldiagnostics.goodput.events.listener import EventListener
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.pipeline.sink import Sink

_PAGE = 1000
_LOOK_UP_S = 30.0
_SCOPE = "https://www.googleapis.com/auth/logging.read"
_EXTRA = "cloud-logging"


def maker(url: str) -> SinkMaker:
    """Return the maker of the sink for a log; unwritten entries wait in the spool.

    Raises `ConfigurationError` and `MissingExtraError`.
    """
    log = cloud_log(url)
    require("google.cloud.logging", extra=_EXTRA, needed_for=url)

    def make(origin: Origin) -> Sink:
        from dataclasses import replace  # noqa: PLC0415 - with the first event

        from mldiagnostics.sinks.cloud_logging import CloudLoggingSink  # noqa: PLC0415 - the same

        of_project = replace(origin, project=log.project or origin.project)
        return CloudLoggingSink(log.endpoint, of_project, entry=partial(entry_of, logger_name=log.logger_name))

    return spooled(SinkMaker(url, make), url)


def entry_of(
    record: Record,
    origin: Origin,
    *,
    project: str,
    region: str,  # noqa: ARG001 - the resource of such a log has no region
    logger_name: str,
) -> dict[str, Any] | None:
    """Return the entry of an event: the peer's payload, with rank, attempt and run."""
    if record.name != RECORD_NAME or record.payload is None:
        return None
    run = {"run_id": origin.run_id} if origin.run_id else {}
    return {
        "logName": _log_name(project, logger_name),
        "resource": {"type": "global", "labels": {"project_id": project}},
        "timestamp": timestamp(record.t) or timestamp(0),
        "severity": "INFO",
        "insertId": record.payload.get("event_id"),
        "jsonPayload": {**record.payload, "rank": record.rank, "attempt": record.attempt, **run},
    }


class CloudLoggingLog:
    """The entries of one job in one log.

    `retention` is how far back the first read goes; None reads everything.
    """

    jobs = ()

    def __init__(self, url: str, *, retention: timedelta | None = None) -> None:
        log = cloud_log(url)
        require("google.cloud.logging", extra=_EXTRA, needed_for=url)
        from mldiagnostics.sinks.cloud_logging import CredentialsLookup  # noqa: PLC0415 - the extra is there

        self._logger_name, self._job_name = log.logger_name, log.job_name
        self._where = log.project or "the project of the credentials"
        self._access = CredentialsLookup(log.endpoint, project=log.project, scope=_SCOPE)
        self._client: tuple[str, Any] | None = None
        self._retention = retention
        self._overlap = OverlapWindow(retention)

    @classmethod
    def of_client(cls, client: Any, logger_name: str, job_name: str) -> CloudLoggingLog:
        """Return the log that Google's client reads."""
        log = cls(f"cloud-logging://{client.project}/{_quoted(logger_name)}/{_quoted(job_name)}")
        log._client = client.project, client.logging_api
        return log

    @property
    def name(self) -> str:
        """The project, log and job."""
        return f"Cloud Logging {self._where}/{self._logger_name}, job {self._job_name}"

    def read_new(self, history: EventListener, now: datetime) -> None:
        """See `Log.read_new`."""
        self._feed(history, now)
        while history.begin_again():
            self._overlap.begin_again()
            self._feed(history, now)

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:
        """See `Log.payloads`."""
        return self._entries("timestamp", OverlapWindow(self._retention).start(now), now)

    def exists(self) -> bool:
        """Return true: a service has a log of any name."""
        return True

    def position(self) -> dict[str, object]:
        """See `Log.position`."""
        moments = {"asked": self._overlap.last_read, "since": self._overlap.since}
        return (
            {name: moment.isoformat() for name, moment in moments.items() if moment} if self._overlap.last_read else {}
        )

    def resume(self, position: dict[str, object]) -> None:
        """See `Log.resume`."""
        from datetime import datetime  # noqa: PLC0415 - only here

        if position:
            last_read, since = (datetime.fromisoformat(str(position.get(name))) for name in ("asked", "since"))
            if last_read.tzinfo is None or since.tzinfo is None:
                raise ValueError(f"{position!r}: no time zone")
            self._overlap.last_read, self._overlap.since = last_read, since

    def _feed(self, history: EventListener, now: datetime) -> None:
        since = "timestamp" if self._overlap.last_read is None else "receiveTimestamp"
        self._overlap.add_new(self._entries(since, self._overlap.start(now), now), now, history)

    def _entries(self, since: str, start: datetime, end: datetime) -> Iterator[LoggedPayload]:
        try:
            project, api = self._connected()
            self._where = project
            clauses = (
                f'logName="{_log_name(project, self._logger_name)}"',
                "severity=INFO",
                f"jsonPayload.job_name={json.dumps(self._job_name)}",
                f'timestamp<="{end.isoformat()}"',
                f'{since}>="{start.isoformat()}"',
            )
            names, order = [f"projects/{project}"], "timestamp asc"
            for entry in api.list_entries(names, filter_=" AND ".join(clauses), order_by=order, page_size=_PAGE):
                logged = entry.timestamp.timestamp() if entry.timestamp else None
                if isinstance(entry.payload, dict):
                    yield LoggedPayload(entry.payload, logged, 0, "")
        except Exception as error:  # Google's client and its transport can raise anything
            raise LogUnreadable(f"{self.name}: cannot be read: {error}{_advice(error)}") from error

    def _connected(self) -> tuple[str, Any]:
        if self._client is None:
            access = self._access.wait(_LOOK_UP_S)
            self._client = access.project, access.api
        return self._client


def _log_name(project: str, logger_name: str) -> str:
    return f"projects/{project}/logs/{_quoted(logger_name)}"


def _quoted(name: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - only such logs need it

    return quote(name, safe="")


def _advice(error: Exception) -> str:
    return "; grant the reader the role roles/logging.viewer" if getattr(error, "code", None) == 403 else ""
