"""The records of one run as this process makes them: from the buffer through the drain to its sinks."""

from __future__ import annotations

import atexit
import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.buffer import PROCESS, Buffer, FlushToken
from mldiagnostics.pipeline.drain import Drain
from mldiagnostics.pipeline.forks import wait_for_imports
from mldiagnostics.pipeline.sink_worker import SinkWorker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Kind
    from mldiagnostics.pipeline.sink import SinkMaker

_LAST_STEPS_S = 5.0  # a thread that has answered only has to return

_LAST_WORD_S = 0.5  # all that is left for a recording whose sinks may be well, where those before used up the time

_SIGNAL_TIMEOUT_S = 2.0
"""How long a forked child that gets SIGTERM may take for what it has recorded."""

EXIT_TIMEOUT_S = 10.0
"""How long the end of the process waits for the sinks of all recordings together that nobody closed before."""


@dataclass(frozen=True, slots=True)
class CloseSummary:
    """What became of a process's records: written by sink, dropped by reason; `complete` if nothing waits any more."""

    written: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True


class RecordPipeline:
    """Takes records from any thread and writes them to every sink, until it is closed or the process ends.

    With `waits` threads wait for room in a full buffer (see `backpressure`), otherwise what does not fit is dropped.
    What was put into `buffer` before it exists is its too. Nothing here raises or waits, but `flush` and `close`,
    which wait for at most the time they are given. In a forked child it goes on by itself with its first record, as a
    process of its own: new threads, new sinks, and an origin with another incarnation.
    """

    def __init__(
        self,
        origin: Origin,
        sinks: Sequence[SinkMaker],
        *,
        buffer: Buffer = PROCESS,
        lasting: bool = False,
        waits: bool = False,
    ) -> None:
        self.origin = origin
        self.lasting = lasting
        """Whether the end of the process leaves it to `close_all`."""
        self._makers = tuple(sinks)
        self._waits = waits
        self._buffer = buffer
        self._lanes: list[SinkWorker] = []
        self._drain: Drain | None = None
        self._closed: CloseSummary | None = None
        self._closing = False
        self._start()
        _open.append(self)

    @property
    def sink_names(self) -> list[str]:
        """The sinks that records go to, as warnings name them."""
        return [maker.name for maker in self._makers]

    @property
    def drops(self) -> dict[str, int]:
        """How many records were dropped so far, by reason (`<sink>: <reason>` where only one sink lost them)."""
        return self._buffer.drops.totals() if self._closed is None else dict(self._closed.dropped)

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
        """Record anything; `t` is Unix time in seconds, by default now. Never raises and never waits."""
        self._buffer.add(kind, name, value=value, step=step, labels=labels, t=t, payload=payload)

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was recorded is where it belongs; false if that took too long or a sink failed."""
        return self._mark(timeout_s, closing=False) if self._closed is None else self._closed.complete

    def close(self, timeout_s: float = EXIT_TIMEOUT_S, *, quiet: bool = False) -> CloseSummary:
        """Write what is left, within `timeout_s`, and stop. What is recorded after that waits for the next recording.

        Closing again returns what the first time did. With `quiet` no warning says what was not written in time: the
        caller has said that it need not be.
        """
        if self._closed is None and self._closing:  # a signal's handler, while the thread it interrupts does this
            return CloseSummary({}, self.drops, complete=False)
        if self._closed is None:
            self._closing = True
            complete = self._mark(timeout_s, closing=True, quiet=quiet)
            for lane in self._lanes:
                if lane.waiting:
                    self._buffer.drops.count("unwritten", lane.waiting, sink=lane.name, detail=f"{timeout_s:g} s")
            for loss in self._buffer.drops.take_news():
                if not quiet:
                    warn_once(f"dropped {loss.sink} {loss.reason}", loss.sentence())
            if self in _open:
                _open.remove(self)
            self._buffer.rouse()
            self._closed = CloseSummary({lane.name: lane.written for lane in self._lanes}, self.drops, complete)
            self._buffer.drops.renew()
        return self._closed

    def _start(self) -> None:
        self._lanes = [SinkWorker(maker, self.origin, self._buffer.drops) for maker in self._makers]
        self._drain = Drain(self._buffer, self.origin, self._lanes, waits=self._waits)
        for lane in self._lanes:
            lane.start()
        self._drain.start()
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:  # its children end without the usual handlers
            sys.modules["multiprocessing.util"].Finalize(None, self.close, exitpriority=0)

    def _mark(self, timeout_s: float, *, closing: bool, quiet: bool = False) -> bool:
        if self._drain is None:  # a forked child that has recorded nothing
            return True
        marker = FlushToken(deadline=time.monotonic() + timeout_s, closing=closing)
        self._buffer.append(marker)
        self._drain.wake()
        answers = marker.answers(len(self._lanes))
        marker.abandoned = True
        if closing and not quiet and len(answers) < len(self._lanes):
            warn_once("close-late", f"not every sink could say within {timeout_s:g} s that its records are in place")
        if closing:
            self._drain.stop()
            if len(answers) == len(self._lanes):
                for thread in (self._drain.thread, *(lane.thread for lane in self._lanes)):
                    thread.join(_LAST_STEPS_S)
        return len(answers) == len(self._lanes) and all(answers)

    def _continue_in_child(self) -> None:
        """Stand ready in a forked child: most of them, like data loaders, never record and need no threads."""
        self.origin = self.origin.after_fork()
        self._drain, self._lanes = None, []

        def awaken() -> None:
            self._buffer.rouse()
            self._start()
            from mldiagnostics.pipeline import forked_exit  # noqa: PLC0415 - only in children that record

            forked_exit.guard(_close_quickly)

        self._buffer.doze(awaken)


_open: list[RecordPipeline] = []


def current() -> RecordPipeline | None:
    """Return the recording that was begun last and is not closed."""
    return _open[-1] if _open else None


def opened() -> tuple[RecordPipeline, ...]:
    """Return the recordings that are not closed, in the order in which they began."""
    return tuple(_open)


def flush_all(timeout_s: float) -> bool:
    """Wait until all that this process recorded is where it belongs, for at most `timeout_s`; false if it is not."""
    deadline = time.monotonic() + timeout_s
    flushed = [recording.flush(max(0.0, deadline - time.monotonic())) for recording in tuple(_open)]
    return all(flushed)


def close_all() -> None:
    """Close every recording that is open still, at the end of the process."""
    _close(_open[::-1])


def _close_most() -> None:
    _close([recording for recording in reversed(_open) if not recording.lasting])


def _close_quickly() -> None:
    deadline = time.monotonic() + _SIGNAL_TIMEOUT_S
    for recording in _open[::-1]:
        recording.close(max(_LAST_WORD_S, deadline - time.monotonic()))


def _close(recordings: Sequence[RecordPipeline]) -> None:
    deadline = time.monotonic() + EXIT_TIMEOUT_S
    for recording in recordings:
        recording.close(max(_LAST_WORD_S, deadline - time.monotonic()))


def _after_fork_in_child() -> None:
    for buffer in {recording._buffer for recording in _open} - {PROCESS}:  # noqa: SLF001 - the same module
        buffer.begin_again()
    for recording in _open:
        recording._continue_in_child()  # noqa: SLF001 - the same module


atexit.register(_close_most)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports, after_in_child=_after_fork_in_child)
