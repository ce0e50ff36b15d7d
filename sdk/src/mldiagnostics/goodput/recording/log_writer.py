"""Events that go into a log, through the SDK's buffer and sinks."""

from __future__ import annotations

import os
import threading
from time import time
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.clock import STEP_S, clock_ahead, steady
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.events.payloads import RECORD_NAME, payload_maker
from mldiagnostics.goodput.recording.arguments import keep_step, posix_seconds
from mldiagnostics.goodput.written_logs import note_written
from mldiagnostics.lifecycle.current_run import current
from mldiagnostics.pipeline.buffer import PROCESS, Buffer
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.values import Unrecordable

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.pipeline.buffer import Entry, PayloadMaker
    from mldiagnostics.pipeline.recorder import RecordPipeline

__all__ = ["EventWriter", "LogWriter"]

FLUSH_TIMEOUT_S = 10.0


class EventWriter(Protocol):
    """Writes the events of a job. No method raises into the training."""

    def write(self, make_payload: PayloadMaker, moment: object = None, step: object = None) -> None:
        """Write an event of now, or of a moment that the program gives."""

    def flush(self) -> None:
        """Wait until all events are written, for at most 10 s."""

    def close(self) -> None:
        """Flush, and release threads and files."""


class LogWriter:
    """Writes events to a log of JSON lines or of Cloud Logging.

    The log is opened with the first event, and again in a forked child. If it is the directory of this process's run,
    events are records of the run.
    """

    def __init__(self, job_name: str, logger_name: str, log: str | os.PathLike[str] | None) -> None:
        self._names = job_name, logger_name, log
        self._buffer: Buffer | None = None
        """The log's own buffer; None while events are records of the run."""
        self._target: Buffer | None = None
        """The open buffer, to which `write` appends; None where that needs a check first."""
        self._pipeline: RecordPipeline | None = None
        self._run: CurrentRun | None = None
        """The run whose records the events are; after the run, the log continues in a file of its own."""
        self._failure = ""
        self.url = ""
        """The path or URL of the log, once it is open."""

    def write(self, make_payload: PayloadMaker, moment: object = None, step: object = None) -> None:
        """See `EventWriter.write`; arrays are read by another thread."""
        buffer = self._target
        if (
            buffer is not None
            and moment is None
            and (type(step) is int or step is None)
            and len(buffer.entries) < buffer.capacity
            and -STEP_S < (t := time()) - steady() - buffer.clock < STEP_S
        ):
            entry: Entry = (t, "event", RECORD_NAME, None, step, None, make_payload, 0)
            buffer.append(entry)
            if buffer is not self._target:
                self._write_again(buffer, entry)
        else:
            self._write_checked(make_payload, moment, step)

    def flush(self) -> None:
        """See `EventWriter.flush`."""
        if self._pipeline is not None:  # that of an ended run is closed and has nothing to flush
            self._pipeline.flush(FLUSH_TIMEOUT_S)

    def close(self) -> None:
        """See `EventWriter.close`; a later event opens the log again."""
        if self._run is not None:
            self.flush()
            return
        with _open_lock:
            pipeline, self._buffer, self._pipeline = self._pipeline, None, None  # later events belong to the next log
            self._target = None
        if pipeline is not None:
            pipeline.close(FLUSH_TIMEOUT_S)

    def _leave_run(self) -> None:
        self._target = None  # the buffer belongs to the next run

    def _write_checked(self, make_payload: PayloadMaker, moment: object, step: object) -> None:
        now = time()  # the first event opens the log, which takes a while
        t = now if moment is None else posix_seconds(moment)
        buffer = self._open_buffer()
        if buffer is not None:
            self._record_clock_step(buffer, now)
        if t is None or buffer is None:
            return
        try:
            kept, charge = (step, 0) if step is None or type(step) is int else keep_step(step)
            entry: Entry = (t, "event", RECORD_NAME, None, kept, None, make_payload, charge)
            buffer.put(entry)
            if buffer is not self._buffer and buffer is not PROCESS:
                self._write_again(buffer, entry)
        except Unrecordable as reason:
            buffer.drops.count(reason.reason, detail=f"{RECORD_NAME}: {reason}")
        except Exception as error:  # noqa: BLE001 - methods of a foreign object may raise anything
            buffer.drops.count("bad-value", detail=f"{RECORD_NAME}: {type(error).__name__}: {shown(error)}")

    def _write_again(self, closed: Buffer, entry: Entry) -> None:
        """Write an entry to the next log unless the drain of a closed log takes it.

        The thread may have read the buffer before `close` and appended to it behind the closing token.
        """
        while True:
            try:
                closed.entries.remove(entry)
            except ValueError:  # the drain took it
                return
            except IndexError:  # the drain took another one during the search
                continue
            if (buffer := self._open_buffer()) is not None:
                buffer.put(entry)
            return

    def _record_clock_step(self, buffer: Buffer, now: float) -> None:
        """Record by how much the host's clock was set since the last event, if it was."""
        if -STEP_S < time() - steady() - buffer.clock < STEP_S:
            return
        with _open_lock:
            ahead = clock_ahead()
            clock_step = ahead - buffer.clock
            if abs(clock_step) >= STEP_S:
                make_payload = payload_maker(self._names[0], "clock_step_time", clock_step_us=round(clock_step * 1e6))
                buffer.put((now, "event", RECORD_NAME, None, None, None, make_payload, 0))
            if not abs(clock_step) < STEP_S:  # also before the first event, where it is NaN
                buffer.clock = ahead

    def _open_buffer(self) -> Buffer | None:
        """Return the buffer of the log, opened with the first event; None if that failed."""
        if self._run is not None and self._run is current():
            return PROCESS
        if self._buffer is None:
            with _open_lock:
                self._open_once()
        return PROCESS if self._run is not None else self._buffer

    def _open_once(self) -> None:
        if self._buffer is None and not self._failure:
            try:
                self._open()
            except Exception as error:  # noqa: BLE001 - no error may stop the training
                self._failure = f"goodput of job {shown(self._names[0])}: nothing is recorded: {error}"
        if self._failure:
            warn_once("goodput-log", self._failure)

    def _open(self) -> None:
        from mldiagnostics.goodput.location import DEFAULT  # noqa: PLC0415 - with the first event
        from mldiagnostics.goodput.log import absolute, known_places, writing  # noqa: PLC0415 - the same

        place, run = known_places(*self._names)[0], current()
        url = absolute(place.url)
        if place.known_by == DEFAULT and os.environ.get("KUBERNETES_SERVICE_HOST"):
            warn_once(
                "goodput-log-in-pod",
                f"the goodput log of job {shown(self._names[0])} ends with the pod: set MLDIAG_STORAGE, "
                "MLDIAG_GOODPUT_LOG or log= to a bucket or a mounted volume",
            )
        job_name, logger_name, _ = self._names
        if run is not None and url == run.directory:
            self._pipeline, self._run, self._target = run.recording, run, PROCESS
            run.on_close(self._leave_run)
        else:
            buffer = Buffer()
            self._pipeline = writing.open_pipeline(
                url, job_name=job_name, logger_name=logger_name, run=self._run or run, buffer=buffer
            )
            self._buffer, self._run, self._target = buffer, None, buffer
        self.url = url
        note_written(job_name, logger_name, url)


def _renew_lock() -> None:
    global _open_lock  # noqa: PLW0603 - in a forked child, a thread of the parent may hold the old one for ever
    _open_lock = threading.RLock()


_open_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
