"""`mldiag trace --follow`: the trace again and again, while its sources grow."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.text.counts import counted
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_cli.output import note
from mldiagnostics_cli.trace.export import NothingShown, show_trace, write_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.trace.cloud_logging import JobLogs
    from mldiagnostics_cli.trace.export import TraceOptions


EVERY_S = 10.0
"""Pause between two readings: Cloud Logging allows 60 a minute in a project."""

LATE_US = 10 * 10**6
"""An entry can be read so long after Cloud Logging has received it."""

_EMPTY_LIST_BYTES = 8
"""An empty list in a file: `[]` and a line end."""


def follow_trace(
    choice: SourceChoice,
    references: Sequence[str],
    logs: JobLogs | None,
    options: TraceOptions,
    *,
    out: str,
    output: OutputFormat,
) -> None:
    """Write a trace until Ctrl-C, or until the end of the wanted time has passed.

    Entries of Cloud Logging are read once: each reading asks for those that were received since the one before.

    Args:
        choice: Source of the runs.
        references: Logs, directories of logs, and runs.
        logs: Entries of Cloud Logging; None for none.
        options: Which entries are shown.
        out: File or URL of the trace.
        output: Format of the first summary.

    Raises:
        ConfigurationError: A reference does not exist.
        MLDiagnosticsError: A source cannot be read the first time.
    """
    with tempfile.TemporaryDirectory(prefix="mldiag-trace-") as folder:
        received = None if logs is None else _ReceivedLogs(logs, Path(folder))
        events = 0
        while True:
            now = time.time_ns() // 1000
            has_more = received is not None and received.read(until=now - LATE_US)
            if references or has_more or not events:
                known = [*references, *(received.files if received else ())]
                events = _write(known, choice, options, out, output, before=events)
            if options.end is not None and now >= options.end + LATE_US:
                return
            time.sleep(EVERY_S)


def _write(
    known: Sequence[str], choice: SourceChoice, options: TraceOptions, out: str, output: OutputFormat, *, before: int
) -> int:
    """Write the trace of the known sources, and return the number of its events."""
    try:
        trace = write_trace(choice, known, options, out=out) if known else None
    except NothingShown:
        trace = None
    if trace is None:
        note(f"{out}: no entry yet; waiting. Ctrl-C ends it.")
        return 0
    if not before:
        show_trace(trace, output)
        note("It is written again while more entries come; Ctrl-C ends it.")
    elif trace.events.number != before:
        note(f"{out}: {counted(trace.events.number, 'event')}, until {timestamp((trace.events.last or 0) / 1e6)}")
    return trace.events.number


@dataclass(slots=True)
class _ReceivedLogs:
    """Files with the entries that Cloud Logging has received so far."""

    logs: JobLogs
    folder: Path
    files: list[str] = field(default_factory=list)
    _until: int = 0

    def read(self, *, until: int) -> bool:
        """Read the entries that were received before a moment, in microseconds since 1970.

        A failure ends the command only at the first reading; later the same entries are read again.

        Returns:
            Whether there are more.
        """
        since = self._until or self.logs.start
        if until <= since:
            return False
        file = self.folder / f"{since}.json"
        try:
            with replace(self.logs, received=(since, until)).opened() as entries, file.open("wb") as copy:
                shutil.copyfileobj(entries, copy)
        except MLDiagnosticsError as error:
            if not self._until:
                raise
            note(f"mldiag: {error}; trying again")
            return False
        self._until = until
        if file.stat().st_size <= _EMPTY_LIST_BYTES:
            return False
        self.files.append(str(file))
        return True
