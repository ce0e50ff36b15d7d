"""Where a recorder's events go: into a log through the SDK's buffer, or to an object of somebody else's."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from datetime import datetime
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

from mldiagnostics.clock import STEP_S, clock_ahead, steady
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.event_payloads import telling
from mldiagnostics.lifecycle.current_run import current as current_run
from mldiagnostics.pipeline.buffer import PROCESS, Buffer
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.values import Unrecordable, keep, settle

if TYPE_CHECKING:
    from mldiagnostics.pipeline.buffer import Telling
    from mldiagnostics.pipeline.recorder import RecordPipeline

NAME = "goodput"
"""Name of the records that tell of goodput."""

FLUSH_TIMEOUT_S = 10.0

OWN_FLUSH_TIMEOUT_S = 5.0
"""How long a query waits for the records of its own process."""

_END_OF_TIME = 7_258_118_400.0
_FIRST_S = 946_684_800.0
"""The year 2000: smaller numbers are not POSIX seconds of a job but readings of a clock that begins elsewhere."""


class EventWriter(Protocol):
    """Takes what is told of a job. Nothing here raises into the training."""

    def tell(self, telling: Telling, moment: object = None, step: object = None) -> None:
        """Take an event of now, or of a moment that the program names."""

    def flush(self) -> None:
        """Return when all that was told is where it belongs, or after 10 s."""

    def close(self) -> None:
        """Flush, and give threads and files back."""


class LogWriter:
    """A log of JSON lines or of Cloud Logging: begun with the first event, and anew in a forked child.

    The log of the run that this process is in is that run's own records.
    """

    def __init__(self, job_name: str, logger_name: str, log: str | os.PathLike[str] | None) -> None:
        self._names = job_name, logger_name, log
        self._buffer: Buffer | None = None
        self._recording: RecordPipeline | None = None
        self._run: Any = None
        """The run whose own records the log is; when that is over, the log goes on in a file of its own."""
        self._impossible = ""
        self.url = ""
        """Where the log is, once it has begun."""

    def tell(self, telling: Telling, moment: object = None, step: object = None) -> None:
        """See `EventWriter.tell`; what an array holds is read by another thread."""
        buffer = self._buffer
        if (
            buffer is not None
            and moment is None
            and (type(step) is int or step is None)
            and len(buffer.entries) < buffer.capacity
            and -STEP_S < (t := time()) - steady() - buffer.clock < STEP_S
        ):
            buffer.append((t, "event", NAME, None, step, None, telling, 0))
        else:
            self._tell_with_care(telling, moment, step)

    def flush(self) -> None:
        """See `EventWriter.flush`."""
        if self._recording is not None:  # that of a run which is over has nothing to flush
            self._recording.flush(FLUSH_TIMEOUT_S)

    def close(self) -> None:
        """See `EventWriter.close`; what is told later begins the log again."""
        if self._run is not None:
            self.flush()
            return
        with _beginning:
            recording, self._buffer, self._recording = self._recording, None, None  # what comes now is of the next log
        if recording is not None:
            recording.close(FLUSH_TIMEOUT_S)

    def _tell_with_care(self, telling: Telling, moment: object, step: object) -> None:
        buffer = self._begun()
        if buffer is not None:
            self._watch_clock(buffer)
        t = posix(moment)
        if t is None or buffer is None:
            return
        try:
            kept, charge = (step, 0) if step is None or type(step) is int else _keep_step(step)
            buffer.put((t, "event", NAME, None, kept, None, telling, charge))
        except Unrecordable as reason:
            buffer.drops.count(reason.reason, detail=f"{NAME}: {reason}")
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when it is looked at
            buffer.drops.count("bad-value", detail=f"{NAME}: {type(error).__name__}: {shown(error)}")

    def _watch_clock(self, buffer: Buffer) -> None:
        """Record by how much the clock of the host was set since the last event, if it was."""
        if -STEP_S < time() - steady() - buffer.clock < STEP_S:
            return
        with _beginning:
            ahead = clock_ahead()
            step = ahead - buffer.clock
            if abs(step) >= STEP_S:
                telling_step = telling(self._names[0], "clock_step_time", clock_step_us=round(step * 1e6))
                buffer.put((time(), "event", NAME, None, None, None, telling_step, 0))
            if not abs(step) < STEP_S:  # nor is it a number before the first event
                buffer.clock = ahead

    def _begun(self) -> Buffer | None:
        """Return the buffer of the log, which begins with its first event; None if there can be no log."""
        if self._run is not None and self._run is current_run():
            return PROCESS
        if self._buffer is None:
            with _beginning:
                self._begin_once()
        return PROCESS if self._run is not None else self._buffer

    def _begin_once(self) -> None:
        if self._buffer is None and not self._impossible:
            try:
                self._begin()
            except Exception as error:  # noqa: BLE001 - whatever it is, the training goes on
                self._impossible = f"no goodput of {shown(self._names[0])} is recorded: {error}"
        if self._impossible:
            warn_once("goodput-log", self._impossible)

    def _begin(self) -> None:
        from mldiagnostics.goodput.log import place_log, writing  # noqa: PLC0415 - with the first event

        url, run = place_log(*self._names), current_run()
        if run is not None and url == run.directory:
            self._recording, self._run = run.recording, run
        else:
            buffer = Buffer()
            job_name, logger_name, _ = self._names
            recording = writing.begin(
                url, job_name=job_name, logger_name=logger_name, run=self._run or run, buffer=buffer
            )
            self._recording, self._buffer, self._run = recording, buffer, None
        self.url = url
        _begun[self._names[:2]] = url


class CallbackWriter:
    """An object with `write_cloud_logging_entry`, called at once with what ml-goodput-measurement would write."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def tell(self, telling: Telling, moment: object = None, step: object = None) -> None:
        """See `EventWriter.tell`."""
        t = posix(moment)
        if t is None:
            return
        try:
            number: Any = step
            self._writer.write_cloud_logging_entry(telling(t, None if step is None else int(number), ""))
        except Exception as error:  # noqa: BLE001 - it is somebody else's, and the training goes on
            warn_once("goodput-writer", f"an event of goodput is lost, {type(self._writer).__name__} says: {error!r}")

    def flush(self) -> None:
        """Have the object flush, if it can."""
        try:
            if hasattr(self._writer, "flush"):
                self._writer.flush()
        except Exception as error:  # noqa: BLE001 - as above
            warn_once("goodput-writer-flush", f"{type(self._writer).__name__} does not flush: {error!r}")

    def close(self) -> None:
        """Flush: the object is its maker's."""
        self.flush()


def posix(moment: object) -> float | None:
    """Return a moment in POSIX seconds, None is now; None, with a complaint, for what is no moment of our days.

    Naive datetimes are local time, as for `datetime.timestamp`. A number that counts from the start of the machine, as
    that of `time.monotonic`, is replaced by now, with a complaint.
    """
    t = -1.0
    with suppress(Exception):  # a foreign object may raise anything when it is looked at
        if moment is None:
            t = time()
        elif isinstance(moment, datetime):
            t = float(moment.timestamp())
        elif isinstance(moment, int | float) and not isinstance(moment, bool):
            t = float(moment)
            if 0.0 <= t < _FIRST_S:
                warn_once(
                    "goodput-monotonic",
                    f"moment {shown(moment)}: not POSIX seconds (before the year 2000), the event is recorded as now; "
                    "give time.time(), not time.monotonic() or time.perf_counter(), or leave it out",
                )
                return time()
    if 0.0 <= t < _END_OF_TIME:
        return t
    warn_once(
        "goodput-time", f"{shown(moment)!r} is no moment, its event is dropped: give a datetime between 1970 and 2200"
    )
    return None


def written_log(job_name: str, logger_name: str) -> str | None:
    """Return the path or URL of the log that a recorder of this process writes, None if there is no such recorder."""
    return _begun.get((job_name, logger_name))


def flush_written(url: str) -> None:
    """Flush what recorders of this process wrote to the log at `url`, or to a log above it, for at most 5 s.

    A reader in the process of the recorder then answers with all that was recorded before. Loads nothing, and does
    nothing in a process without a recorder.
    """
    recording = sys.modules.get("mldiagnostics.pipeline.recorder")
    if recording is None:
        return
    deadline = monotonic() + OWN_FLUSH_TIMEOUT_S
    for each in recording.opened():
        place = each.origin.storage if each.lasting else each.origin.directory  # the log of a recorder, or of a run
        if url == place or url.startswith(f"{place.rstrip('/')}/"):
            each.flush(max(0.0, deadline - monotonic()))


def _keep_step(step: Any) -> tuple[Any, int]:
    """Return a step in a form that stays readable, without waiting for it.

    Arrays of JAX are often donated to the very step whose number they are: one that is computed is read, of one that is
    still to come the device makes a copy.
    """
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(step, jax.Array) or isinstance(step, jax.core.Tracer):
        return keep(step)
    if step.is_ready():
        return settle(keep(step)[0]), 0
    return keep(jax.device_put(step.addressable_data(0), may_alias=False))


def _write_the_last() -> None:
    """Close all logs after the program's own handlers of its exit, which may have told how the job ended."""
    recording = sys.modules.get("mldiagnostics.pipeline.recorder")
    if recording is not None:
        recording.close_all()


atexit.register(_write_the_last)  # before any recorder can be made, so that it comes after what programs register


def _renew_lock() -> None:
    global _beginning  # noqa: PLW0603 - another thread of the parent may hold the old one, for ever
    _beginning = threading.RLock()


_begun: dict[tuple[str, str], str] = {}
"""Paths or URLs of the logs that this process writes, by the names of job and logger."""

_beginning = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
