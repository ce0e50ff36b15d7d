"""The logs below a directory that is not a log, such as a root of runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.errors import ConfigurationError, StoreError
from mldiagnostics.goodput.location import CLOUD_LOGGING
from mldiagnostics.layout import RECORDS_DIR
from mldiagnostics.text.counts import counted
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


COMMAND = "python -m mldiagnostics.goodput"
"""Reads the goodput of a log where only the SDK is installed."""

MOST = 20
_FOLDERS = ("goodput/*/*", "*/*", "*")
"""Logs below a storage root, below a root of goodput logs, and below one logger."""


class _Log(NamedTuple):
    """The path or URL of a log, and a description."""

    location: str
    what: str


def describe_nearby(url: str, command: str = COMMAND) -> str:
    """Return a message with the command for each log below a URL; empty without logs."""
    runs = list(_runs(url))
    known = {Path(log.location).absolute() for log in runs}
    logs = [*runs, *(log for log in _logs(url) if Path(log.location).absolute() not in known)]
    if not logs:
        return ""
    lines = [_line(log, command) for log in logs[:MOST]]
    more = [f"… and {len(logs) - MOST} more"] if len(logs) > MOST else []
    return "\n  ".join(
        [f"{printable(url)}: not a goodput log; {counted(len(logs), 'log', 'are')} below it:", *lines, *more]
    )


def _line(log: _Log, command: str) -> str:
    return printable(f"{command} {shlex.quote(log.location)}") + (f"   # {printable(log.what)}" if log.what else "")


def _runs(url: str) -> Iterator[_Log]:
    """Yield the runs below a root, the newest first."""
    from mldiagnostics.runs.listing import line_of, list_runs  # noqa: PLC0415 - only without a log

    if url.startswith(CLOUD_LOGGING):
        return
    try:
        rows = list_runs(url)
    except (ConfigurationError, StoreError):
        return
    yield from (_Log(row.directory, line_of(row, with_id=False)) for row in rows)


def _logs(url: str) -> Iterator[_Log]:
    """Yield the logs of recorders below a local root."""
    if "://" in url or url.startswith(CLOUD_LOGGING):
        return
    folders = (folder for depth in _FOLDERS for folder in sorted(Path(url).glob(f"{depth}/{RECORDS_DIR}")))
    yield from (_Log(str(folder.parent), "") for folder in folders)
