"""The pipeline of a run's records in this process.

Buffer, drain, and one worker per sink.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.buffer import PROCESS, Buffer, FlushToken, ReadyRecords, child_of_multiprocessing
from mldiagnostics.pipeline.drain import Drain
from mldiagnostics.pipeline.forks import wait_for_imports
from mldiagnostics.pipeline.sink_worker import SinkWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Kind, Record
    from mldiagnostics.pipeline.sink import SinkMaker

_JOIN_TIMEOUT_S = 5.0  # a thread that has acknowledged only has to return

_SHORTEST_CLOSE_S = 0.5  # for each pipeline, even if the earlier ones have used up the time

_SIGNAL_TIMEOUT_S = 2.0
"""Time limit for the records of a forked child that receives SIGTERM."""

EXIT_TIMEOUT_S = 10.0
"""Time limit at the end of the process for the sinks of all open pipelines together."""


@dataclass(frozen=True, slots=True)
class CloseSummary:
    """Numbers of a process's records: written by sink, dropped by reason.

    `complete` if none waits.
    """

    written: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True


class RecordPipeline:
    """Writes records of all threads to every sink, until it is closed.

    Records made before it exists are written too. No method raises, and only `flush` and `close` wait, up to their time
    limit. In a forked child it continues with the first record, as a process of its own: new threads, new sinks, and an
    origin with another incarnation.

    Args:
        origin: Identity of the process in its records.
        sinks: Makers of the sinks.
        observers: Makers of sinks that are not destinations of records, and so not in any summary.
        buffer: Buffer of the records.
        lasting: Whether `close_all` closes it at the end of the process, after other pipelines.
        waits: Whether threads wait for room in a full buffer (see `backpressure`), instead of dropping records.
    """

    def __init__(
        self,
        origin: Origin,
        sinks: Sequence[SinkMaker],
        *,
        observers: Sequence[SinkMaker] = (),
        buffer: Buffer = PROCESS,
        lasting: bool = False,
        waits: bool = False,
    ) -> None:
        self.origin = origin
        self.lasting = lasting
        """Whether `close_all` closes it at the end of the process."""
        self.on_child: Callable[[], object] = lambda: None
        """Called in a forked child with its first record; must return at once."""
        self._sinks, self._observers = tuple(sinks), tuple(observers)
        self._waits = waits
        self._buffer = buffer
        self._workers: list[SinkWorker] = []
        self._drain: Drain | None = None
        self._closed: CloseSummary | None = None
        self._closing = False
        self._close_lock = threading.RLock()
        self._start()
        _open.append(self)

    @property
    def sink_names(self) -> list[str]:
        """Names of the sinks, as in warnings."""
        return [maker.name for maker in self._sinks]

    @property
    def drops(self) -> dict[str, int]:
        """Numbers of dropped records by reason, or `<sink>: <reason>` for one sink."""
        return self._buffer.drops.totals() if self._closed is None else dict(self._closed.dropped)

    @property
    def last_step(self) -> int | None:
        """Step of the last metric, None before the first one that has a step."""
        return self._drain.last_step if self._drain is not None else None

    def append(
        self,
        kind: Kind,
        name: str,
        *,
        value: Any = None,
        step: int | None = None,
        labels: Mapping[str, str] | None = None,
        t: float | datetime | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a record; `t` is Unix time in seconds, by default now.

        Never raises and never waits.
        """
        self._buffer.add(kind, name, value=value, step=step, labels=labels, t=t, payload=payload)

    def extend(self, records: list[Record]) -> None:
        """Add records whose values are settled, without the buffer's bound.

        Never raises and never waits; a sink that is too far behind drops them.
        """
        self._buffer.append(ReadyRecords(records))

    def flush(self, timeout_s: float) -> bool:
        """Wait until all records are delivered.

        Return False on a timeout or a failed sink.
        """
        return self._send_token(timeout_s, closing=False) if self._closed is None else self._closed.complete

    def close(self, timeout_s: float = EXIT_TIMEOUT_S, *, quiet: bool = False) -> CloseSummary:
        """Write the remaining records within `timeout_s` and stop.

        Later records wait for the next pipeline.

        Closing again returns the first result, after waiting for a thread that closes. With `quiet` no warning reports
        records that were not written in time.
        """
        is_locked = self._close_lock.acquire(timeout=timeout_s)
        try:
            if self._closed is None and (self._closing or not is_locked):  # a signal handler interrupted this call
                return CloseSummary({}, self.drops, complete=False)
            return self._closed or self._close(timeout_s, quiet=quiet)
        finally:
            if is_locked:
                self._close_lock.release()

    def _close(self, timeout_s: float, *, quiet: bool) -> CloseSummary:
        self._closing = True
        complete = self._send_token(timeout_s, closing=True, quiet=quiet)
        for worker in self._workers:
            if worker.waiting:
                self._buffer.drops.count("unwritten", worker.waiting, sink=worker.name, detail=f"{timeout_s:g} s")
        complete = complete and "unwritten" not in self.drops
        for loss in self._buffer.drops.take_new():
            if not quiet:
                warn_once(loss.subject, loss.sentence())
        if self in _open:
            _open.remove(self)
        self._buffer.resume()
        written = {worker.name: worker.written for worker in self._workers[: len(self._sinks)]}
        self._closed = CloseSummary(written, self.drops, complete)
        self._buffer.drops.reset()
        return self._closed

    def _start(self) -> None:
        drops = self._buffer.drops
        workers = [SinkWorker(maker, self.origin, drops) for maker in self._sinks]
        observers = [SinkWorker(maker, self.origin, drops) for maker in self._observers]
        self._workers = [*workers, *observers]
        self._drain = Drain(self._buffer, self.origin, workers, observers=observers, waits=self._waits)
        for worker in self._workers:
            worker.start()
        self._drain.start()
        if child_of_multiprocessing() is not None:
            sys.modules["multiprocessing.util"].Finalize(None, self.close, exitpriority=0)

    def _send_token(self, timeout_s: float, *, closing: bool, quiet: bool = False) -> bool:
        if self._drain is None:  # a forked child that has recorded nothing
            return True
        token = FlushToken(deadline=time.monotonic() + timeout_s, closing=closing)
        self._buffer.append(token)
        self._drain.wake()
        delivered = token.wait(len(self._workers))
        token.abandoned = True
        if closing and not quiet and len(delivered) < len(self._workers):
            warn_once("close-late", f"not every sink has delivered its records within {timeout_s:g} s")
        if closing:
            self._drain.stop(token)
            if len(delivered) == len(self._workers):
                for thread in (self._drain.thread, *(worker.thread for worker in self._workers)):
                    thread.join(_JOIN_TIMEOUT_S)
        return len(delivered) == len(self._workers) and all(delivered)

    def _continue_in_child(self) -> None:
        """Prepare a forked child.

        Most, such as data loaders, never record and need no threads.
        """
        self.origin = self.origin.after_fork()
        self._drain, self._workers = None, []
        self._closing, self._close_lock = False, threading.RLock()

        def start() -> None:
            self._buffer.resume()
            self._start()
            from mldiagnostics.pipeline import forked_exit  # noqa: PLC0415 - only in children that record

            forked_exit.guard(_close_quickly)
            self.on_child()

        self._buffer.suspend(start)


_open: list[RecordPipeline] = []


def current() -> RecordPipeline | None:
    """Return the latest open pipeline, None if there is none."""
    return _open[-1] if _open else None


def opened() -> tuple[RecordPipeline, ...]:
    """Return the open pipelines, the oldest first."""
    return tuple(_open)


def flush_all(timeout_s: float) -> bool:
    """Wait up to `timeout_s` until all records of this process are delivered.

    Return whether they are.
    """
    deadline = time.monotonic() + timeout_s
    flushed = [pipeline.flush(max(0.0, deadline - time.monotonic())) for pipeline in tuple(_open)]
    return all(flushed)


def close_all() -> None:
    """Close all open pipelines, at the end of the process."""
    _close(_open[::-1])


def _close_most() -> None:
    _close([pipeline for pipeline in reversed(_open) if not pipeline.lasting])


def _close_quickly() -> None:
    deadline = time.monotonic() + _SIGNAL_TIMEOUT_S
    for pipeline in _open[::-1]:
        pipeline.close(max(_SHORTEST_CLOSE_S, deadline - time.monotonic()))


def _close(pipelines: Sequence[RecordPipeline]) -> None:
    deadline = time.monotonic() + EXIT_TIMEOUT_S
    for pipeline in pipelines:
        pipeline.close(max(_SHORTEST_CLOSE_S, deadline - time.monotonic()))


def _after_fork_in_child() -> None:
    for buffer in {pipeline._buffer for pipeline in _open} - {PROCESS}:  # noqa: SLF001 - the same module
        buffer.reset_in_child()
    for pipeline in _open:
        pipeline._continue_in_child()  # noqa: SLF001 - the same module


atexit.register(_close_most)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports, after_in_child=_after_fork_in_child)
