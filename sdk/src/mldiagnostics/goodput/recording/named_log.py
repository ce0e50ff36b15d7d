"""A job's log as an object that writes and reads payloads.

It is the cloud logger of ml-goodput-measurement.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.events.payloads import entry_maker
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.recording.log_writer import LogWriter
from mldiagnostics.goodput.written_logs import flush_written

if TYPE_CHECKING:
    from collections.abc import Mapping


class NamedLog:
    """The log of a `GoodputRecorder` with the same names, for `cloud_logger=`."""

    def __init__(
        self,
        job_name: str,
        log_name: str,
        max_logs_retention_period: timedelta | None = None,
        *,
        background_grace_period_s: float = 5.0,  # noqa: ARG002 - of the peer
        background_batch_size: int = 100,  # noqa: ARG002 - the same
        background_max_latency_s: float = 2.0,  # noqa: ARG002 - the same
    ) -> None:
        self.job_name, self.log_name = job_name, log_name
        self.retention_period = max_logs_retention_period or timedelta(days=7)
        self.job_start_time: datetime | None = None
        """Start of the job, once it was read."""
        self._writer = LogWriter(job_name, log_name, None)

    @property
    def project_id(self) -> str | None:
        """Google Cloud project of this machine, None if the look-up takes over a second."""
        from mldiagnostics.goodput.google_cloud import get_gcp_project_id  # noqa: PLC0415 - rarely used

        return get_gcp_project_id()

    def write_cloud_logging_entry(self, entry: Mapping[str, Any] | None) -> None:
        """Write a payload; ignore None and payloads of other jobs.

        Raises KeyError if the payload has no `job_name`.
        """
        if entry is not None and entry["job_name"] == self.job_name:
            self._writer.write(entry_maker(self.job_name, entry))

    def flush(self) -> None:
        """Wait until all payloads are in the log, for at most 10 s."""
        self._writer.flush()

    def read_cloud_logging_entries(
        self,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        last_entry_info: tuple[datetime, str] | None = None,
    ) -> tuple[list[dict[str, Any]], tuple[datetime | None, str | None]]:
        """Return payloads logged after `start_time`, or after the last one that was read.

        The second value has the time and id of the last entry, for the next call. Raises `LogUnreadable`.
        """
        end = end_time or datetime.now(timezone.utc)
        since = last_entry_info[0] if last_entry_info else start_time or end - self.retention_period
        known = last_entry_info[1] if last_entry_info else None
        entries: list[tuple[datetime, str, dict[str, Any]]] = []
        url = search_log(self.job_name, self.log_name)
        flush_written(url)
        for entry in open_log(url, job_name=self.job_name).payloads(end):
            when = datetime.fromtimestamp(entry.logged or 0.0, timezone.utc)
            name = str(entry.payload.get("event_id", ""))
            if since <= when <= end and (since < when or (known is not None and name != known)):
                entries.append((when, name, dict(entry.payload)))
        entries.sort(key=lambda row: row[0])
        starts = (payload["job_start_time"] for _, _, payload in entries if "job_start_time" in payload)
        if self.job_start_time is None and (start := next(starts, None)) is not None:
            self.job_start_time = datetime.fromtimestamp(start, timezone.utc)
        return [payload for _, _, payload in entries], entries[-1][:2] if entries else (None, None)
