"""`mldiag trace`: one trace of logs and runs, written while they are read."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.runs.run_goodput import goodput_log
from mldiagnostics.text.counts import counted
from mldiagnostics.text.file_errors import file_problem
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import note, show_rows
from mldiagnostics_cli.runs.opening import open_source
from mldiagnostics_cli.sources import find, is_directory
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.trace.cloud_logging import JobLogs
from mldiagnostics_cli.trace.entries import CorruptPart, LogEntry, is_at_least
from mldiagnostics_cli.trace.events import FOOT, HEAD, TraceEvents
from mldiagnostics_cli.trace.log_files import read_log
from mldiagnostics_cli.trace.page import VIEWER
from mldiagnostics_cli.trace.run_tracks import run_events
from mldiagnostics_cli.trace.writing import GZIP_SUFFIX, PAGE_SUFFIX, STANDARD_OUTPUT, write
from mldiagnostics_cli.values import DASH, age

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from re import Pattern

    from mldiagnostics.runs import RunRow

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.trace.log_files import LogItem

    _Source = str | JobLogs | RunRow | list[Path]


STDIN = STDOUT = STANDARD_OUTPUT

PIECE = 256 * 1024
"""Characters that are compressed and written at once."""

_LOG_SUFFIXES = frozenset({".log", ".txt", ".json", ".jsonl", ".csv"})


class NothingShown(ConfigurationError):
    """No entry of the sources is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """Which entries of logs are shown; times are microseconds since 1970."""

    job: str | None = None
    start: int | None = None
    end: int | None = None
    severity: str | None = None
    excluded: tuple[Pattern[str], ...] = ()
    """Entries with a match in their message are left out."""

    def accepts(self, item: LogItem) -> bool:
        """Return whether an item is shown."""
        if isinstance(item, CorruptPart):
            return True
        if (self.start is not None and item.t < self.start) or (self.end is not None and item.t >= self.end):
            return False
        if not isinstance(item, LogEntry):
            return True
        if self.job is not None and item.process != self.job and not item.process.startswith(f"{self.job}-"):
            return False
        if any(pattern.search(item.message) for pattern in self.excluded):
            return False
        return self.severity is None or is_at_least(item.severity, self.severity)


@dataclass(slots=True)
class _SkippedParts:
    """The parts of one log that were skipped."""

    first: CorruptPart
    number: int = 0


@dataclass(slots=True)
class WrittenTrace:
    """The result so far."""

    out: str
    events: TraceEvents = field(default_factory=TraceEvents)
    skipped: dict[str, _SkippedParts] = field(default_factory=dict)
    """By log."""

    @property
    def skips(self) -> int:
        """Number of parts that were skipped."""
        return sum(each.number for each in self.skipped.values())

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON."""
        events = self.events
        return {
            "file": self.out,
            "events": events.number,
            "tracks": events.tracks,
            "start": None if events.first is None else timestamp(events.first / 1e6),
            "end": None if events.last is None else timestamp(events.last / 1e6),
            "skipped": self.skips,
        }


def write_trace(
    choice: SourceChoice, references: Sequence[str | JobLogs], options: TraceOptions, *, out: str | None
) -> WrittenTrace:
    """Write a trace of logs and runs.

    Args:
        choice: Source of the runs.
        references: Logs, directories of logs, `-` for standard input, runs, and logs of Cloud Logging.
        options: Which entries are shown.
        out: File or URL of the trace, `-` for standard output; by default named after the first source.

    Raises:
        NothingShown: No source has an entry. No file is written then.
        ConfigurationError: A reference does not exist.
        ClusterFailure: The cluster rejects it.
        StoreError: A run cannot be read.
        UnwritableTrace: The file cannot be written.
    """
    trace = WrittenTrace(default_out(_name(references[0])) if out is None else out)
    with ExitStack() as stack:
        write(trace.out, _pieces(trace, _resolved(stack, choice, references), options))
    return trace


def show_trace(trace: WrittenTrace, output: OutputFormat) -> None:
    """Print how much a trace has, and how to open it."""
    if trace.out != STDOUT:
        show_rows([trace], _COLUMNS, output, name=lambda each: each.out, document=WrittenTrace.to_json)
    for log, skipped in trace.skipped.items():
        first = skipped.first
        note(f"{log}: parts that cannot be read: {skipped.number}; the first: {first.place} {first.reason}")
    if trace.out != STDOUT and output in {OutputFormat.TABLE, OutputFormat.WIDE}:
        is_page = trace.out.endswith(PAGE_SUFFIX)
        where = "in a browser" if is_page else f"at {VIEWER} or in chrome://tracing"
        note(f"Open the file {where}; it is not uploaded.")


def _resolved(stack: ExitStack, choice: SourceChoice, references: Sequence[str | JobLogs]) -> list[_Source]:
    """Return the selected logs and runs.

    Their files can be read while the stack is open.
    """
    found = [_named(each) if isinstance(each, str) else each for each in references]
    runs = [_name(reference) for reference, meant in zip(references, found, strict=True) if meant is None]
    if not runs:
        return [meant for meant in found if meant is not None]
    source = stack.enter_context(open_source(choice, runs))
    return [
        stack.enter_context(source.fetched(source.find(_name(reference)))) if meant is None else meant
        for reference, meant in zip(references, found, strict=True)
    ]


def _named(source: str) -> str | RunRow | list[Path] | None:
    """Return the log, the directory of logs, or of a run; None for a run's name."""
    path = Path(source)
    if source == STDIN or path.is_file():
        return source
    if path.is_dir() and not (path / RUN_RECORD).is_file():
        logs = sorted(each for each in path.rglob("*") if each.is_file() and _is_log(each))
        if not logs:
            raise ConfigurationError(
                f"{source}: has no logs; pass files, or a directory with {', '.join(sorted(_LOG_SUFFIXES))}"
            )
        return logs
    if not path.exists() and path.with_suffix("").suffix + path.suffix and "://" not in source:
        raise ConfigurationError(f"{source}: no such file; pass the path of a log, a run, or - for standard input")
    return find(".", source).row if is_directory(source) else None


def _is_log(path: Path) -> bool:
    suffixes = [suffix for suffix in path.suffixes if suffix != GZIP_SUFFIX]
    return bool(suffixes) and suffixes[-1] in _LOG_SUFFIXES and suffixes[-2:] != [".trace", ".json"]


def _name(source: str | JobLogs) -> str:
    return source if isinstance(source, str) else source.title


def default_out(source: str) -> str:
    """Return the file of a source; `log.json` and `log.csv` have two."""
    name = "stdin" if source == STDIN else Path(source.rstrip("/")).name.removesuffix(GZIP_SUFFIX)
    return f"{name.strip('.') or 'logs'}.trace.json{GZIP_SUFFIX}"


def _pieces(trace: WrittenTrace, sources: Iterable[Any], options: TraceOptions) -> Iterator[bytes]:
    gathered, length = [HEAD], 0
    for text in _texts(trace, sources, options):
        gathered.append(text)
        length += len(text)
        if length >= PIECE:
            yield "".join(gathered).encode()
            gathered, length = [], 0
    if trace.events.number == 0:
        reason = f"; {counted(trace.skips, 'part')} cannot be read" if trace.skips else ""
        raise NothingShown(f"{trace.out}: not written: no entry of the sources is shown{reason}; check the filters")
    yield "".join([*gathered, FOOT]).encode()


def _texts(trace: WrittenTrace, sources: Iterable[Any], options: TraceOptions) -> Iterator[str]:
    for source in sources:
        if isinstance(source, str | JobLogs):
            yield from _log_texts(trace, source, options)
        elif isinstance(source, list):
            for path in source:
                yield from _log_texts(trace, str(path), options)
        else:
            yield from run_events(trace.events, source, now=time.time_ns() // 1000, log=goodput_log(source))


def _log_texts(trace: WrittenTrace, log: str | JobLogs, options: TraceOptions) -> Iterator[str]:
    with ExitStack() as stack:
        try:
            title, file = _opened(stack, log)
            for item in read_log(file):
                if isinstance(item, CorruptPart):
                    trace.skipped.setdefault(_name(log), _SkippedParts(item)).number += 1
                elif options.accepts(item):
                    yield trace.events.log(item, title) if isinstance(item, LogEntry) else trace.events.sample(item)
        except OSError as error:
            raise ConfigurationError(f"{_name(log)}: {file_problem(error)}") from error


def _opened(stack: ExitStack, log: str | JobLogs) -> tuple[str, IO[bytes]]:
    """Return the name of a log, and its file while the stack is open."""
    if isinstance(log, JobLogs):
        return log.title, stack.enter_context(log.opened())
    if log == STDIN:
        return "stdin", sys.stdin.buffer
    return Path(log).name, stack.enter_context(Path(log).open("rb"))


_COLUMNS: list[TableColumn[WrittenTrace]] = [
    TableColumn("FILE", lambda trace: trace.out),
    TableColumn("EVENTS", lambda trace: str(trace.events.number), is_number=True),
    TableColumn("TRACKS", lambda trace: str(trace.events.tracks), is_number=True),
    TableColumn(
        "FROM", lambda trace: DASH if trace.events.first is None else timestamp(trace.events.first / 1e6) or DASH
    ),
    TableColumn("SPAN", lambda trace: age(((trace.events.last or 0) - (trace.events.first or 0)) / 1e6)),
    TableColumn("SKIPPED", lambda trace: str(trace.skips), is_number=True),
]
