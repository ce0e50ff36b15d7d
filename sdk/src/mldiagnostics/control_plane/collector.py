"""The sink that keeps newest metrics, profiles and goodput events for reports."""

from __future__ import annotations

import threading
from math import isfinite
from typing import TYPE_CHECKING, Any

from mldiagnostics.control_plane.event_backlog import EventBacklog
from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS, Collected
from mldiagnostics.goodput.events.clocks import CLOCK_STEP
from mldiagnostics.goodput.events.conversion import cause_of_end, micros, parse
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.events.packing import ClockStep
from mldiagnostics.pipeline.records import ON_DEMAND, is_goodput
from mldiagnostics.pipeline.sink import BatchPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.pipeline.sink import Sink


_MAX_NAME = 200


class Collector:
    """A sink in memory, written by its worker and read by the thread that reports.

    Args:
        origin: Identity of the process in its records.
        keeps_events: Whether the process reports goodput events.
        on_server: Called when the profiler server starts.
    """

    batch_policy = BatchPolicy()
    durable = True

    def __init__(self, origin: Origin, *, keeps_events: bool, on_server: Callable[[], None]) -> None:
        self._origin = origin
        self._keeps_events = keeps_events
        self._on_server = on_server
        self._lock = threading.Lock()
        self._metrics: dict[str, float | None] = {}
        self._sessions: dict[str, dict[str, Any]] = {}
        self._profiler: dict[str, Any] = {}
        self._step: int | None = None
        self._backlog = EventBacklog()

    def open(self) -> None:
        """See `Sink.open`."""

    def write(self, batch: Sequence[Record]) -> None:
        """Keep what the records change."""
        is_new = False
        with self._lock:
            for record in batch:
                if record.kind == "metric":
                    self._keep_metric(record)
                elif record.kind == "session":
                    is_new = self._keep_session(record) or is_new
                elif self._keeps_events:
                    self._keep_event(record)
        if is_new:
            self._on_server()

    def flush(self) -> None:
        """See `Sink.flush`; reports have their own schedule."""

    def close(self) -> None:
        """See `Sink.close`; the last report is still to come."""

    def collected(self, persisted_events: int) -> Collected:
        """Return the newest state, with the goodput events that are not persisted."""
        with self._lock:
            self._backlog.note_persisted(persisted_events)
            first, events = self._backlog.unpersisted()
            sessions = [dict(session) for session in self._sessions.values()]
            return Collected(
                dict(self._metrics), sessions, self._profiler, self._step, first, events, self._backlog.count
            )

    def stop_events(self, persisted_events: int) -> None:
        """Keep no more goodput events, and none that is not persisted."""
        with self._lock:
            if self._keeps_events:
                self._keeps_events = False
                self._backlog.note_persisted(persisted_events)
                self._backlog.stop()

    def release(self) -> None:
        """Release the events and keep no more; called after the last report."""
        with self._lock:
            self._keeps_events = False
            self._backlog.close()

    def _keep_metric(self, record: Record) -> None:
        value = record.value
        if isinstance(value, tuple):  # one number per device
            value = sum(value) / len(value) if value else None
        if value is None or len(record.name) > _MAX_NAME:
            return
        self._metrics.pop(record.name, None)
        self._metrics[record.name] = value if isfinite(value) else None
        if len(self._metrics) > MAX_METRICS:
            del self._metrics[next(iter(self._metrics))]
        if record.step is not None and record.step >= 0:
            self._step = record.step

    def _keep_session(self, record: Record) -> bool:
        """Keep a profile, or the profiler server; return whether it is a new server."""
        payload = record.payload or {}
        state = payload.get("state")
        if record.name == ON_DEMAND and state == "listening":
            self._profiler = {key: payload.get(key) for key in ("port", "server", "version")}
            return True
        if len(record.name) > _MAX_NAME:
            return False
        known = self._sessions.pop(record.name, {"start": record.t})
        start, stop = payload.get("start_ns"), payload.get("stop_ns")
        times = {key: ns / 1e9 for key, ns in (("start", start), ("stop", stop)) if isinstance(ns, int)}
        session = {"id": record.name, "directory": self._origin.directory, **known, **times, "state": str(state)}
        self._sessions[record.name] = session
        if len(self._sessions) > MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return False

    def _keep_event(self, record: Record) -> None:
        payload = record.payload or {}
        if is_goodput(record):
            step = payload.get(CLOCK_STEP)
            if type(step) is int and step:
                self._backlog.add(ClockStep(step))
                return
            events = parse(payload, rank=record.rank, run=self._origin.run_id, logged=record.t)
            for event in () if isinstance(events, str) else events:
                self._backlog.add(event)
        elif (t := micros(record.t)) is None:
            return
        elif record.kind == "heartbeat":
            self._backlog.add(Event(t, EventCode.ALIVE, 0, record.rank, self._origin.run_id))
        elif record.kind == "phase" and (cause := cause_of_end(payload.get("reason"))):
            self._backlog.add(Event(t, EventCode.CAUSE, cause, record.rank, self._origin.run_id))


class NoCollector:
    """The sink of a forked child, which reports nothing."""

    batch_policy = BatchPolicy()
    durable = True

    def open(self) -> None:
        """See `Sink.open`."""

    def write(self, batch: Sequence[Record]) -> None:
        """Drop the records, which other sinks have."""

    def flush(self) -> None:
        """See `Sink.flush`."""

    def close(self) -> None:
        """See `Sink.close`."""


if TYPE_CHECKING:
    _: type[Sink] = NoCollector
