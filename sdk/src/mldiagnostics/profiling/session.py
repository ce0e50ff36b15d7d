"""Programmatic profiles: recorded, then collected and stored on another thread.

The caller's thread never waits for another profile. While one records, a second is rejected at once. While the trace of
the last one is collected, which takes less than a millisecond for a small trace and minutes for a large one, the next
recording is queued: it starts by itself as soon as the profiler is free.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.profiling.backlog import Backlog
from mldiagnostics.profiling.claim import ProfilerClaim, queue
from mldiagnostics.profiling.frameworks import recorder
from mldiagnostics.profiling.recorder import Busy, CannotRecord
from mldiagnostics.profiling.storage import spool_trace, store_run_trace
from mldiagnostics.text.redaction import redact

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.profiling.recorder import TraceRecorder, TraceRecording

_STOP_TIMEOUT_S = 1.0

_HANDOVER_S = 0.02
"""How long a start waits for the last trace to be collected.

A small trace takes less than a millisecond, but its thread needs the GIL first. Without the wait, profiles of single
steps would lose their step.
"""

_AT_EXIT_S = 20.0
"""How long the end of a run waits for unstored traces; Kubernetes allows 30 s in all."""

_MAX_WAITING_BYTES = 512 * 1024 * 1024
"""Memory of traces that wait for a slow store, beyond which no profile starts."""

_unstored: set[ProfileSession] = set()
_backlog = Backlog(_MAX_WAITING_BYTES)
_closing_run: weakref.ref[CurrentRun] | None = None


class ProfileSession:
    """One profile: queued, recording, collected or stored."""

    def __init__(
        self, run: CurrentRun, name: str, recorder: TraceRecorder, claim: ProfilerClaim, *, step: int | None
    ) -> None:
        self.name = name
        self._run, self._recorder, self._claim, self._step = run, recorder, claim, step
        self._recording: TraceRecording | None = None
        self._trace: bytes | None = None
        self._start_ns = self._stop_ns = time.time_ns()
        # Unlike events, queues are safe in a signal handler that interrupts the same call.
        self._stop_requested: SimpleQueue[None] = SimpleQueue()
        self._stop_started: SimpleQueue[None] = SimpleQueue()
        self._finished: SimpleQueue[None] = SimpleQueue()
        self._is_stopped = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="mldiagnostics-profile", daemon=True)

    def start(self) -> None:
        """Start to record, here or later on the session's thread once it is its turn."""
        if self._claim.wait(_HANDOVER_S):
            self._record()
        try:
            self._thread.start()  # now, because no thread can be started while the interpreter shuts down
        except RuntimeError:
            if self._recording is not None:
                self._recording.stop()
            raise

    def stop(self) -> None:
        """Stop recording and return; the session's thread collects and stores the trace."""
        if self._is_stopped or os.getpid() != self._pid:  # a forked child has no recording
            return
        self._is_stopped = True
        self._stop_requested.put(None)
        if self._recording is None:
            self._claim.withdraw()
        else:
            with contextlib.suppress(Empty):
                self._stop_started.get(timeout=_STOP_TIMEOUT_S)  # keeps the caller's next work out of the trace

    def discard(self) -> None:
        """Release a session that did not start."""
        _unstored.discard(self)
        self._claim.release()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the trace is stored or lost; false after `timeout_s`."""
        with contextlib.suppress(Empty):
            self._finished.get(timeout=timeout_s)
            self._finished.put(None)
            return True
        return False

    def spool(self, problem: str) -> None:
        """Write the trace, which was not stored in time, to the spool, or log its loss."""
        try:
            if self._trace is None:
                raise CannotRecord("its trace is still being collected")  # noqa: TRY301 - handled with the other errors
            spool_trace(self._run, self.name, self._trace, problem)
        except (CannotRecord, MLDiagnosticsError) as error:
            warn_once("profile-late", f"profile {self.name}: lost, {problem}; {error}")

    def _record(self) -> None:
        self._recording = self._recorder.start()
        self._start_ns = time.time_ns()
        self._note("recording")

    def _work(self) -> None:
        """Record, wait for the stop, collect the trace and queue it for storage."""
        try:
            trace = self._collect()
        except CannotRecord as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - an exception in this thread would be lost
            self._fail(f"{type(error).__name__}: {error}")
        else:
            self._trace = trace
            _backlog.add(len(trace), lambda: self._store(trace))

    def _collect(self) -> bytes:
        try:
            if self._recording is None:
                self._record_in_turn()
            assert self._recording is not None  # noqa: S101 - for mypy: `_record` sets it or raises
            self._stop_requested.get()
            self._stop_ns = time.time_ns()
            self._claim.collect()
            self._stop_started.put(None)
            return self._recording.stop()
        finally:
            self._claim.release()

    def _record_in_turn(self) -> None:
        if not self._claim.wait(None) or self._is_stopped:
            raise CannotRecord(
                "it was stopped before the trace of the previous profile was collected; leave more time between "
                "two profiles"
            )
        self._record()

    def _store(self, trace: bytes) -> None:
        try:
            stored = store_run_trace(self._run, self.name, trace)
        except MLDiagnosticsError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - an exception in this thread would be lost
            self._fail(f"{type(error).__name__}: {error}")
        else:
            self._close("spooled" if stored.spooled else "stored", file=stored.url, bytes=len(trace))

    def _fail(self, reason: str) -> None:
        warn_once("profile-lost", f"profile {self.name}: lost, {reason}")
        self._close("failed", reason=redact(reason))

    def _close(self, state: str, **details: object) -> None:
        self._trace = None
        self._note(state, start_ns=self._start_ns, stop_ns=self._stop_ns, **details)
        _unstored.discard(self)
        self._finished.put(None)

    def _note(self, state: str, **details: object) -> None:
        self._run.recording.append("session", self.name, step=self._step, payload={"state": state, **details})


def start(run: CurrentRun, name: str, *, step: int | None) -> ProfileSession | None:
    """Start a session; on any problem log a warning and return None."""
    try:
        return _start(run, name, step=step)
    except Busy as error:
        warn_once("profile-busy", f"profile {name}: not taken, {error}; profiles of one process cannot overlap")
    except (CannotRecord, MLDiagnosticsError) as error:
        warn_once("profile-not-started", f"profile {name}: not taken, {error}")
    except Exception as error:  # noqa: BLE001 - a framework's error must not stop the training
        warn_once("profile-not-started", f"profile {name}: not taken, {type(error).__name__}: {error}")
    return None


def _start(run: CurrentRun, name: str, *, step: int | None) -> ProfileSession:
    if _backlog.is_full:
        raise CannotRecord(
            f"{_backlog.waiting_bytes >> 20} MiB of earlier profiles wait to be stored in {run.directory}; "
            "check that storage, or profile less often"
        )
    adapter = recorder(run.framework.value)
    session = ProfileSession(run, name, adapter, queue(f"profile {name}"), step=step)
    _unstored.add(session)
    try:
        session.start()
    except BaseException:
        session.discard()
        raise
    _finish_at_close(run)
    return session


def _finish_at_close(run: CurrentRun) -> None:
    """Make the end of the run wait for its traces."""
    global _closing_run  # noqa: PLW0603 - there is one run at a time
    if _closing_run is None or _closing_run() is not run:
        _closing_run = weakref.ref(run)
        run.on_close(finish_all)


def finish_all() -> None:
    """Stop all sessions and wait up to `_AT_EXIT_S` until their traces are stored."""
    deadline = time.monotonic() + _AT_EXIT_S
    for session in tuple(_unstored):
        session.stop()
    for session in tuple(_unstored):
        if not session.wait(max(deadline - time.monotonic(), 0)):
            session.spool(f"it was not stored within {_AT_EXIT_S:.0f} s")


def _after_fork() -> None:
    """Reset in a forked child: sessions and their threads exist only in the parent."""
    global _unstored, _backlog, _closing_run
    _unstored, _backlog, _closing_run = set(), Backlog(_MAX_WAITING_BYTES), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
