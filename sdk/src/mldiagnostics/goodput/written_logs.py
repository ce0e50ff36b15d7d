"""The logs that this process writes, for readers in the same process.

Imports little: every process with a recorder loads it.
"""

from __future__ import annotations

import atexit
from threading import Thread, current_thread
from time import monotonic

from mldiagnostics.lifecycle.current_run import current

OWN_FLUSH_TIMEOUT_S = 5.0
"""How long a query waits for the records of its own process."""

_urls: dict[tuple[str, str], str] = {}
"""Paths or URLs of logs, by the names of job and logger."""

_openings: set[Thread] = set()
"""Threads that open logs."""


def note_opening(thread: Thread) -> None:
    """Let readers, and the end of the process, wait for a thread that opens a log."""
    _openings.add(thread)


def note_written(job_name: str, logger_name: str, url: str) -> None:
    """Remember where a recorder of this process writes."""
    _urls[job_name, logger_name] = url


def written_log(job_name: str, logger_name: str) -> str | None:
    """Return the path or URL of a log that this process writes, None without one."""
    _finish_openings()
    return _urls.get((job_name, logger_name))


def forget_written() -> None:
    """Forget all logs, as a new process would."""
    _urls.clear()


def flush_written(url: str) -> None:
    """Flush this process's records in the log at `url`, or in a log above it.

    It takes at most 5 s. A reader in the process of a recorder then sees all that was recorded before.
    """
    _finish_openings()
    if not _urls and current() is None:
        return
    from mldiagnostics.pipeline.recorder import opened  # noqa: PLC0415 - the writer has loaded it

    deadline = monotonic() + OWN_FLUSH_TIMEOUT_S
    for pipeline in opened():
        origin = pipeline.origin
        root = origin.storage if pipeline.lasting else origin.directory  # a recorder's log, or a run's records
        if url == root or url.startswith(f"{root.rstrip('/')}/"):
            pipeline.flush(max(0.0, deadline - monotonic()))


def _finish_openings() -> None:
    deadline = monotonic() + OWN_FLUSH_TIMEOUT_S
    for thread in _openings - {current_thread()}:
        thread.join(max(0.0, deadline - monotonic()))
        _openings.discard(thread)


def _close_logs() -> None:
    """Close all logs after the program's exit handlers, which may record a job end."""
    _finish_openings()
    if _urls:
        from mldiagnostics.pipeline.recorder import close_all  # noqa: PLC0415 - the writer has loaded it

        close_all()


atexit.register(_close_logs)  # on import, before any recorder exists: it then runs after the program's handlers
