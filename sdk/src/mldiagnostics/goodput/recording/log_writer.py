"""Events that go into a log, through the SDK's buffer and sinks."""

from __future__ import annotations

import os
import threading
from time import sleep, time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mldiagnostics.clock import STEP_S, clock_ahead, steady
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.events.payloads import RECORD_NAME, payload_maker
from mldiagnostics.goodput.recording.arguments import keep_step, posix_seconds
from mldiagnostics.goodput.written_logs import note_opening, note_written
from mldiagnostics.lifecycle.current_run import current
from mldiagnostics.pipeline.buffer import PROCESS, Buffer, child_of_multiprocessing
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.values import Unrecordable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.pipeline.buffer import Entry, PayloadMaker
    from mldiagnostics.pipeline.recorder import RecordPipeline


FLUSH_TIMEOUT_S = 10.0
_FORK_TIMEOUT_S = 5.0
_PAUSE_S = 0.001
"""Pause of the thread that opens a log, so that the caller, which has started it, goes on first."""


class EventWriter(Protocol):
    """Writes the events of a job. No method raises into the training."""

    def write(
        self, make_payload: PayloadMaker, moment: object = None, step: object = None, steady_s: float | None = None
    ) -> None:
        """Write an event of now, or of a moment that the program gives.

        `steady_s` is a reading of `clock.steady` that was made just before.
        """

    def note_clock(self) -> None:
        """Record by how much the host's clock was set since the last event, if it was."""

    def flush(self) -> None:
        """Wait until all events are written, for at most 10 s."""

    def close(self) -> None:
        """Flush, and release threads and files."""


class Situation(NamedTuple):
    """State of the process at the first event, which gives the location of the log."""

    run: CurrentRun | None
    env: Mapping[str, str]
    directory: str


class LogWriter:
    """Writes events to a log of JSON lines or of Cloud Logging.

    The log is opened with the first event, and again in a forked child: by a thread of its own, as that loads modules,
    while events wait in the buffer. If it is the directory of this process's run, events are records of the run.
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
        self._opening: threading.Thread | None = None
        """The thread that opens the log, None before and after."""
        self.url = ""
        """The path or URL of the log, once it is open."""

    def write(
        self, make_payload: PayloadMaker, moment: object = None, step: object = None, steady_s: float | None = None
    ) -> None:
        """See `EventWriter.write`; arrays are read by another thread."""
        buffer = self._target
        if (
            buffer is not None
            and moment is None
            and (type(step) is int or step is None)
            and len(buffer.entries) < buffer.capacity
            and -STEP_S < (t := time()) - (steady() if steady_s is None else steady_s) - buffer.clock < STEP_S
        ):
            entry: Entry = (t, "event", RECORD_NAME, None, step, None, make_payload, 0)
            buffer.append(entry)
            if buffer is not self._target:
                self._write_again(buffer, entry)
        else:
            self._write_checked(make_payload, moment, step)

    def note_clock(self) -> None:
        """See `EventWriter.note_clock`; before the first event there is nothing to move."""
        buffer = PROCESS if self._run is not None and self._run is current() else self._target
        if buffer is not None:
            self._record_clock_step(buffer, time())

    def flush(self) -> None:
        """See `EventWriter.flush`."""
        self._finish_opening()
        if self._pipeline is not None:  # that of an ended run is closed and has nothing to flush
            self._pipeline.flush(FLUSH_TIMEOUT_S)

    def close(self) -> None:
        """See `EventWriter.close`; a later event opens the log again."""
        if self._run is not None:
            self.flush()
            return
        self._finish_opening()
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
            run, buffer = current(), Buffer()
            situation = Situation(run, dict(os.environ), _working_directory())
            loads_modules = run is None and self._run is None
            if not (loads_modules and child_of_multiprocessing() is None and self._open_later(buffer, situation)):
                self._open(buffer, situation)
        if self._failure:
            warn_once("goodput-log", self._failure)

    def _open_later(self, buffer: Buffer, situation: Situation) -> bool:
        """Open the log in another thread; return whether that has started."""
        thread = threading.Thread(
            target=self._open_soon, args=(buffer, situation), name="mldiagnostics-goodput-log", daemon=True
        )
        self._buffer, self._target, self._opening = buffer, buffer, thread
        _opening.add(self)
        try:
            thread.start()
        except RuntimeError:  # no more threads for this process, or it ends
            self._reset()
            return False
        note_opening(thread)
        return True

    def _open_soon(self, buffer: Buffer, situation: Situation) -> None:
        sleep(_PAUSE_S)
        self._open(buffer, situation)
        if self._failure:
            self._reset()
            for _ in range(len(buffer.entries)):
                warn_once("goodput-log", self._failure)
        self._opening = None
        _opening.discard(self)

    def _finish_opening(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        if (thread := self._opening) is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _reset(self) -> None:
        self._buffer = self._target = self._pipeline = self._opening = None
        _opening.discard(self)

    def _open(self, buffer: Buffer, situation: Situation) -> None:
        try:
            self._open_log(buffer, situation)
        except Exception as error:  # noqa: BLE001 - no error may stop the training
            self._failure = f"goodput of job {shown(self._names[0])}: nothing is recorded: {error}"

    def _open_log(self, buffer: Buffer, situation: Situation) -> None:
        from mldiagnostics.goodput.location import DEFAULT, log_locations  # noqa: PLC0415 - with the first event
        from mldiagnostics.goodput.log import absolute, writing  # noqa: PLC0415 - the same

        job_name, logger_name, log = self._names
        run, env, directory = situation
        location, *_ = log_locations(
            log=None if log is None else os.fspath(log),
            logger_name=logger_name,
            job_name=job_name,
            env=env,
            run_storage=None if run is None else run.storage,
        )
        url = absolute(location.url, directory)
        if location.known_by == DEFAULT and env.get("KUBERNETES_SERVICE_HOST"):
            warn_once(
                "goodput-log-in-pod",
                f"the goodput log of job {shown(job_name)} ends with the pod: set MLDIAG_STORAGE, "
                "MLDIAG_GOODPUT_LOG or log= to a bucket or a mounted volume",
            )
        if run is not None and url == run.directory:
            self._pipeline, self._run, self._target = run.recording, run, PROCESS
            run.on_close(self._leave_run)
        else:
            self._pipeline = writing.open_pipeline(
                url, job_name=job_name, logger_name=logger_name, run=self._run or run, buffer=buffer, env=env
            )
            self._buffer, self._run, self._target = buffer, None, buffer
        self.url = url
        note_written(job_name, logger_name, url)


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a string
    except OSError:  # it was deleted
        return ""


def _before_fork() -> None:
    """Delay a fork while a log opens.

    A child would wait for ever for modules that a thread of its parent was loading.
    """
    for writer in tuple(_opening):
        writer._finish_opening(_FORK_TIMEOUT_S)  # noqa: SLF001 - the same module


def _after_fork_in_child() -> None:
    """Leave a log that the parent was opening, and its events, to the parent."""
    global _open_lock  # noqa: PLW0603 - a thread of the parent may hold the old one for ever
    _open_lock = threading.RLock()
    for writer in tuple(_opening):
        _inherited.append(writer._buffer)  # noqa: SLF001 - the same module
        writer._reset()  # noqa: SLF001 - the same


_open_lock = threading.RLock()
_opening: set[LogWriter] = set()
_inherited: list[object] = []
"""Buffers of the parent: to free an array in them could wait for a thread that does not exist here."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
