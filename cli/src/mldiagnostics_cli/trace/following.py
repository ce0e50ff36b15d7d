"""`mldiag trace --follow`: the trace again and again, while its sources grow."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.text.counts import counted
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_cli.output import note
from mldiagnostics_cli.trace.export import NothingShown, show_trace, write_trace
from mldiagnostics_cli.trace.writing import UnwritableTrace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.trace.cloud_logging import JobLogs
    from mldiagnostics_cli.trace.export import TraceOptions, WrittenTrace


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
        MLDiagnosticsError: A source cannot be read the first time, or after the wanted time.
        UnwritableTrace: The file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="mldiag-trace-") as folder:
        received = None if logs is None else _ReceivedLogs(logs, Path(folder))
        trace = _RewrittenTrace(choice, options, out, output)
        while True:
            now = time.time_ns() // 1000
            is_last = options.end is not None and now >= options.end + LATE_US
            has_more = received is not None and received.read(until=now - LATE_US, is_last=is_last)
            if references or has_more or trace.is_due:
                trace.write([*references, *(received.files if received else ())], is_last=is_last)
            if is_last:
                return
            time.sleep(EVERY_S)


@dataclass(slots=True)
class _FailureNotes:
    """Notes of the failures of a source that is read again and again."""

    _last: str = ""

    @contextmanager
    def noted(self, *, must_succeed: bool) -> Iterator[None]:
        """Note a failure of the block unless it must succeed.

        The same one in a row is noted once.
        """
        try:
            yield
        except UnwritableTrace:
            raise
        except (MLDiagnosticsError, OSError) as error:
            if must_succeed:
                raise
            if str(error) != self._last:
                note(f"mldiag: {error}; trying again")
            self._last = str(error)
        else:
            self._last = ""


@dataclass(slots=True)
class _RewrittenTrace:
    """A trace that is written again while its sources grow."""

    choice: SourceChoice
    options: TraceOptions
    out: str
    output: OutputFormat
    is_due: bool = True
    """Whether it is written next time even if no source is known to have grown."""
    _events: int = 0
    _is_read: bool = False
    _failures: _FailureNotes = field(default_factory=_FailureNotes)

    def write(self, known: Sequence[str], *, is_last: bool) -> None:
        """Write the trace of the known sources.

        A failure of a source ends the command only at the first and at the last writing.
        """
        self.is_due = True
        trace = self._written(known, is_last=is_last)
        if trace is None:
            return
        events = trace.events
        if not self._events:
            show_trace(trace, self.output)
            note("It is written again while more entries come; Ctrl-C ends it.")
        elif events.number != self._events:
            note(f"{self.out}: {counted(events.number, 'event')}, until {timestamp((events.last or 0) / 1e6)}")
        self.is_due, self._events = False, events.number

    def _written(self, known: Sequence[str], *, is_last: bool) -> WrittenTrace | None:
        """Return the trace, or None if no entry is shown or a source failed."""
        trace = None
        with self._failures.noted(must_succeed=is_last or not self._is_read):
            with suppress(NothingShown):
                trace = write_trace(self.choice, known, self.options, out=self.out) if known else None
            self._is_read = self._is_read or bool(known)
            if trace is None and not self._events:
                note(f"{self.out}: no entry yet; waiting. Ctrl-C ends it.")
        return trace


@dataclass(slots=True)
class _ReceivedLogs:
    """Files with the entries that Cloud Logging has received so far."""

    logs: JobLogs
    folder: Path
    files: list[str] = field(default_factory=list)
    _until: int = 0
    _failures: _FailureNotes = field(default_factory=_FailureNotes)

    def read(self, *, until: int, is_last: bool) -> bool:
        """Read the entries that were received before a moment, in microseconds since 1970.

        A failure ends the command only at the first and at the last reading; else the same entries are read again.

        Returns:
            Whether there are more.
        """
        since = self._until or self.logs.start
        if until <= since:
            return False
        file = self.folder / f"{since}.json"
        with self._failures.noted(must_succeed=is_last or not self._until):
            with replace(self.logs, received=(since, until)).opened() as entries, file.open("wb") as copy:
                shutil.copyfileobj(entries, copy)
            self._until = until
            if file.stat().st_size > _EMPTY_LIST_BYTES:
                self.files.append(str(file))
                return True
        return False
