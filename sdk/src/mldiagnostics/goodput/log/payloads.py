"""The entries of a job's log as they were logged, for who needs more than events."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.log.callback_log import CallbackLog
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.written_logs import flush_written

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_payloads"]


def read_payloads(
    job_name: str, logger_name: str, *, given: Any = None, log: str | None = None, now: datetime | None = None
) -> list[Mapping[str, Any]]:
    """Return the payloads of the log that `given` reads, else of the one that `search_log` finds, as of `now`.

    `given` is an object with `read_cloud_logging_entries`, or Google's logging client. Raises `LogUnreadable`.
    """
    moment = datetime.now(timezone.utc) if now is None else now
    if given is None:
        url = search_log(job_name, logger_name, log)
        flush_written(url)
        return [told.payload for told in open_log(url, job_name=job_name).payloads(moment)]
    if hasattr(given, "list_entries") and not hasattr(given, "read_cloud_logging_entries"):
        from mldiagnostics.goodput.log.cloud_logging import CloudLoggingLog  # noqa: PLC0415 - who has such a client

        return [told.payload for told in CloudLoggingLog.of_client(given, logger_name, job_name).payloads(moment)]
    return [told.payload for told in CallbackLog(given, job_name=job_name).payloads(moment)]
