"""The payloads of a job's log, unchanged."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.log.callback_log import CallbackLog
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.written_logs import flush_written

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_payloads(
    job_name: str, logger_name: str, *, given: Any = None, log: str | None = None, now: datetime | None = None
) -> list[Mapping[str, Any]]:
    """Return the payloads of a job's log up to `now`.

    `given` is an object with `read_cloud_logging_entries`, or Google's logging client; without it, `search_log` locates
    the log. Raises `LogUnreadable`.
    """
    moment = datetime.now(timezone.utc) if now is None else now
    if given is None:
        url = search_log(job_name, logger_name, log)
        flush_written(url)
        return [entry.payload for entry in open_log(url, job_name=job_name).payloads(moment)]
    if hasattr(given, "list_entries") and not hasattr(given, "read_cloud_logging_entries"):
        from mldiagnostics.goodput.log.cloud_logging import CloudLoggingLog  # noqa: PLC0415 - only such clients need it

        return [entry.payload for entry in CloudLoggingLog.of_client(given, logger_name, job_name).payloads(moment)]
    return [entry.payload for entry in CallbackLog(given, job_name=job_name).payloads(moment)]
