"""Events of a trace in JSON for Perfetto and chrome://tracing. Pure.

Processes and threads are groups and tracks. A track is named before its first event; the order of events is free.
"""

from __future__ import annotations

import json
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from mldiagnostics_cli.trace.pod_names import position_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_cli.trace.entries import LogEntry, MetricSample


HEAD = '{"displayTimeUnit":"ms","traceEvents":[\n'
FOOT = '{"ph":"M","name":"mldiag","pid":1,"tid":0,"args":{}}]}\n'
"""Ends the list with an event that shows nothing, so that each event before it can end in a comma."""

MAX_NAME = 120
"""Characters of a message that stand on its event; the whole message is among its details."""

OTHER_TRACK = "log"

_MOST_WORKERS = 10**6
_ALL_WORKERS = 10**12
"""Groups without a place have the order 0."""

_NO_DETAILS: Mapping[str, object] = MappingProxyType({})
_encode = json.JSONEncoder(default=dict).encode
_quoted = lru_cache(maxsize=1024)(_encode)


class TraceEvents:
    """Encodes events, each followed by a comma and a line break.

    Attributes:
        number: events that were encoded.
        first: the earliest time in microseconds; None without events.
        last: the latest time.
    """

    def __init__(self) -> None:
        self.number = 0
        self.first: int | None = None
        self.last: int | None = None
        self._processes: dict[str, int] = {}
        self._tracks: dict[tuple[str, str], tuple[int, int]] = {}

    @property
    def tracks(self) -> int:
        """The number of tracks."""
        return len(self._tracks)

    def log(self, entry: LogEntry, process: str) -> str:
        """Return the instant of a log's entry.

        `process` is the group of entries that name none.
        """
        t, message, own, container, severity, source = entry
        file = source.rpartition(":")[0].rpartition("/")[2]
        named, pid, tid = self._track(own or process, file or container or OTHER_TRACK)
        name = message[:MAX_NAME].partition("\n")[0]
        details = {"message": message} if len(name) != len(message) else {}
        if source:
            details["source"] = source
        if container:
            details["container"] = container
        self._count(t, t)
        return (
            f'{named}{{"ph":"i","s":"t","ts":{t},"pid":{pid},"tid":{tid},"cat":{_quoted(severity or "INFO")},'
            f'"name":{_encode(name)},"args":{_encode(details) if details else "{}"}}},\n'
        )

    def sample(self, sample: MetricSample, prefix: str = "") -> str:
        """Return the point of a counter; `prefix` begins the name of its group."""
        named, pid, _ = self._track(prefix + sample.process, sample.name)
        self._count(sample.t, sample.t)
        return (
            f'{named}{{"ph":"C","ts":{sample.t},"pid":{pid},"name":{_quoted(sample.name)},'
            f'"args":{{"value":{sample.value!r}}}}},\n'
        )

    def span(
        self, track: tuple[str, str], name: str, *, start: int, end: int, details: Mapping[str, object] = _NO_DETAILS
    ) -> str:
        """Return an interval in microseconds.

        `track` is the names of its process and thread.
        """
        named, pid, tid = self._track(*track)
        self._count(start, end)
        return (
            f'{named}{{"ph":"X","ts":{start},"dur":{end - start},"pid":{pid},"tid":{tid},"name":{_quoted(name)},'
            f'"args":{_encode(details)}}},\n'
        )

    def _count(self, start: int, end: int) -> None:
        self.number += 1
        if self.first is None or start < self.first:
            self.first = start
        if self.last is None or end > self.last:
            self.last = end

    def _track(self, process: str, thread: str) -> tuple[str, int, int]:
        """Return the numbers of a track, after the events that name it if it is new."""
        numbers = self._tracks.get((process, thread))
        if numbers is not None:
            return "", *numbers
        named = ""
        pid = self._processes.get(process)
        if pid is None:
            pid = self._processes[process] = len(self._processes) + 1
            named = _process(process, pid)
        numbers = self._tracks[process, thread] = (pid, len(self._tracks) + 1)
        return named + _naming("thread_name", thread, *numbers), *numbers


def _process(process: str, pid: int) -> str:
    """Return the events that name a group.

    Pods stand by slice and worker before all other groups.
    """
    position = position_of(process)
    if position is None:
        return _naming("process_name", process, pid, 0)
    order = position.slice * _MOST_WORKERS + position.worker - _ALL_WORKERS
    return _naming("process_name", f"{position.title} ({process})", pid, 0) + (
        f'{{"ph":"M","name":"process_sort_index","pid":{pid},"tid":0,"args":{{"sort_index":{order}}}}},\n'
    )


def _naming(kind: str, name: str, pid: int, tid: int) -> str:
    return f'{{"ph":"M","name":"{kind}","pid":{pid},"tid":{tid},"args":{{"name":{_encode(name)}}}}},\n'
