"""Lines of a log as entries. Pure.

They are text with times, JSON lines, or the output of `kubectl logs`.
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

from mldiagnostics_cli.trace.entries import CorruptPart, LogEntry, MetricSample, of_document, reason_of, with_source
from mldiagnostics_cli.trace.moments import CLOCK, of_clock, of_glog

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_CONTINUATION = 64 * 1024
"""Characters of one entry that goes over several lines, as a traceback does; the rest is left out."""

MAX_OPEN_ENTRIES = 4096
"""Entries of so many pods wait for their next lines; Python of 64 KiB each at most."""

_PREFIX = re.compile(r"\[(?:pod/)?([^/\]\s]+)/([^\]\s]+)\] ", re.ASCII)
"""Prefix of `kubectl logs --prefix`."""

_GLOG_TIME = re.compile(r"[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+)\s", re.ASCII)
_LEVEL = re.compile(r"\W{0,3}(?:[\w.]+\W{1,3})?(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b", re.ASCII)


class TextLogParser:
    """Parses the lines of one log, in order.

    A line without a time belongs to the entry before it in the same container.

    Args:
        latest: Latest moment of a time without a year, such as glog's, in microseconds since 1970.
    """

    def __init__(self, *, latest: int) -> None:
        self._latest, self._year = latest, time.gmtime(latest / 1e6).tm_year
        self._open: dict[tuple[str, str], LogEntry] = {}
        self._number = 0

    def feed(self, line: str | None) -> Iterator[LogEntry | MetricSample | CorruptPart]:
        """Yield the entries that a line completes; None is a line that was too long."""
        self._number += 1
        if line is None:
            yield CorruptPart(self._line(), "is too long")
            return
        process = thread = ""
        if line.startswith("[") and (match := _PREFIX.match(line)):
            process, thread, line = match[1], match[2], line[match.end() :]
        t, message = self._timed(line)
        if message.startswith("{"):
            yield from self._document(message, t, process, thread)
        elif t is not None:
            yield from self._begin(with_source(LogEntry(t, message, process, thread, _severity(message))))
        else:
            yield from self._continue(line, process, thread)

    def finish(self) -> Iterator[LogEntry]:
        """Yield the entries that still waited for further lines."""
        yield from self._open.values()
        self._open.clear()

    def _document(
        self, text: str, t: int | None, process: str, thread: str
    ) -> Iterator[LogEntry | MetricSample | CorruptPart]:
        try:
            document = json.loads(text)
            if t is not None and isinstance(document, dict):
                document.setdefault("timestamp", t)
            entry = of_document(document)
        except (ValueError, RecursionError) as error:
            if t is not None:
                yield from self._begin(LogEntry(t, text, process, thread))
            elif (process, thread) in self._open:
                yield from self._continue(text, process, thread)
            else:
                yield CorruptPart(self._line(), reason_of(error))
            return
        if isinstance(entry, LogEntry):
            entry = entry._replace(process=process or entry.process, thread=thread or entry.thread)
        elif entry is not None and process:
            entry = entry._replace(process=process)
        if entry is not None:
            yield entry

    def _begin(self, entry: LogEntry) -> Iterator[LogEntry]:
        before = self._open.pop((entry.process, entry.thread), None)
        if before is not None:
            yield before
        elif len(self._open) >= MAX_OPEN_ENTRIES:
            yield self._open.pop(next(iter(self._open)))
        self._open[entry.process, entry.thread] = entry

    def _continue(self, line: str, process: str, thread: str) -> Iterator[CorruptPart]:
        entry = self._open.get((process, thread))
        if entry is None:
            if line.strip():
                yield CorruptPart(self._line(), "has no time")
        elif len(entry.message) + len(line) < MAX_CONTINUATION:
            self._open[process, thread] = entry._replace(message=f"{entry.message}\n{line}")

    def _timed(self, line: str) -> tuple[int | None, str]:
        """Return the time at the start of a line, and the message after it."""
        start = 1 if line.startswith("[") else 0
        match = CLOCK.match(line, start)
        if match is None:
            glog = _GLOG_TIME.match(line)
            return (None if glog is None else of_glog(glog[1], self._year, latest=self._latest)), line
        message = line[match.end() :].lstrip(" \t]")
        own = CLOCK.match(message)  # of the program, after that of kubectl
        return of_clock(*match.group("second", "fraction", "zone")), message[own.end() :].lstrip() if own else message

    def _line(self) -> str:
        return f"line {self._number}"


def _severity(message: str) -> str:
    match = _LEVEL.match(message)
    return match[1] if match else ""
