"""One programmatic profile of this process: claimed, recorded, collected off the caller's thread, stored.

The caller's thread never waits for another profile. While one records, a second is refused at once. While the trace of
the last one is collected, which takes less than a millisecond for a small trace and minutes for a large one, the next
recording begins by itself as soon as the profiler is free, and the caller goes on.
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
from mldiagnostics.profiling.storage import keep_trace, spool_trace

if TYPE_CHECKING:
    from mldiagnostics.profiling.recorder import TraceRecorder, TraceRecording
    from mldiagnostics.run import MLRun

_BEGINS_TO_STOP_S = 1.0

_HANDOVER_S = 0.02
"""How long a start gives the last profile to leave the profiler, so that profiles of single steps lose none of theirs:
a small trace is collected in under a millisecond, but its thread must get its turn from the interpreter first."""

_AT_EXIT_S = 20.0
"""How long the end of a run waits for traces that are not stored yet: Kubernetes gives 30 s in all."""

_MAX_WAITING_BYTES = 512 * 1024 * 1024
"""What traces that wait for a slow store may take of the job's memory before no new profile begins."""

_unstored: set[ProfileSession] = set()
_backlog = Backlog(_MAX_WAITING_BYTES)
_watched: weakref.ref[MLRun] | None = None


class ProfileSession:
    """A recording under way, or next in turn, and what becomes of it."""

    def __init__(
        self, run: MLRun, name: str, recorder: TraceRecorder, held: ProfilerClaim, *, step: int | None
    ) -> None:
        self.name = name
        self._run, self._recorder, self._held, self._step = run, recorder, held, step
        self._recording: TraceRecording | None = None
        self._trace: bytes | None = None
        self._start_ns = self._stop_ns = time.time_ns()
        # Unlike events, queues may be used by a signal's handler while its thread does so.
        self._wanted: SimpleQueue[None] = SimpleQueue()
        self._begun: SimpleQueue[None] = SimpleQueue()
        self._over: SimpleQueue[None] = SimpleQueue()
        self._ended = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="mldiagnostics-profile", daemon=True)

    def begin(self) -> None:
        """Begin to record, here, or as soon as the last profile has left the profiler, in a thread of its own."""
        if self._held.wait(_HANDOVER_S):
            self._record()
        try:
            self._thread.start()  # now: while the interpreter shuts down it starts no thread any more
        except RuntimeError:
            if self._recording is not None:
                self._recording.stop()
            raise

    def end(self) -> None:
        """Stop recording and return; the trace is collected and stored by a thread of its own."""
        if self._ended or os.getpid() != self._pid:  # a forked child has the object, and not the recording
            return
        self._ended = True
        self._wanted.put(None)
        if self._recording is None:
            self._held.withdraw()
        else:
            with contextlib.suppress(Empty):
                self._begun.get(timeout=_BEGINS_TO_STOP_S)  # so that what the caller does next is not in the trace

    def abandon(self) -> None:
        """Give up a session that did not begin."""
        _unstored.discard(self)
        self._held.release()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the trace is stored or given up; false if that takes longer."""
        with contextlib.suppress(Empty):
            self._over.get(timeout=timeout_s)
            self._over.put(None)
            return True
        return False

    def spool(self, problem: str) -> None:
        """Keep the trace, which its storage has not taken in time, on the local disk, or complain that it is lost."""
        try:
            if self._trace is None:
                raise CannotRecord("its trace is still being collected")  # noqa: TRY301 - one way out
            spool_trace(self._run, self.name, self._trace, problem)
        except (CannotRecord, MLDiagnosticsError) as error:
            warn_once("profile-late", f"profile {self.name}: lost, {problem}; {error}")

    def _record(self) -> None:
        self._recording = self._recorder.start()
        self._start_ns = time.time_ns()
        self._note("recording")

    def _work(self) -> None:
        """Record if that has not begun yet, wait for the end, collect the trace, and leave it to the backlog."""
        try:
            trace = self._collect()
        except CannotRecord as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - a framework's own, in a thread that nobody watches
            self._fail(f"{type(error).__name__}: {error}")
        else:
            self._trace = trace
            _backlog.add(len(trace), lambda: self._store(trace))

    def _collect(self) -> bytes:
        try:
            if self._recording is None:
                self._record_in_turn()
            assert self._recording is not None  # noqa: S101 - for mypy: `_record` sets it or raises
            self._wanted.get()
            self._stop_ns = time.time_ns()
            self._held.collect()
            self._begun.put(None)
            return self._recording.stop()
        finally:
            self._held.release()

    def _record_in_turn(self) -> None:
        if not self._held.wait(None) or self._ended:
            raise CannotRecord(
                "it was stopped while the trace of the profile before it was still being collected; leave more time "
                "between two profiles"
            )
        self._record()

    def _store(self, trace: bytes) -> None:
        try:
            kept = keep_trace(self._run, self.name, trace)
        except MLDiagnosticsError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - a store's own, in a thread that nobody watches
            self._fail(f"{type(error).__name__}: {error}")
        else:
            self._close("spooled" if kept.spooled else "stored", file=kept.url, bytes=len(trace))

    def _fail(self, reason: str) -> None:
        warn_once("profile-lost", f"profile {self.name}: lost, {reason}")
        self._close("failed", reason=reason)

    def _close(self, state: str, **more: object) -> None:
        self._trace = None
        self._note(state, start_ns=self._start_ns, stop_ns=self._stop_ns, **more)
        _unstored.discard(self)
        self._over.put(None)

    def _note(self, state: str, **more: object) -> None:
        self._run.recording.append("session", self.name, step=self._step, payload={"state": state, **more})


def begin(run: MLRun, name: str, *, step: int | None) -> ProfileSession | None:
    """Begin to record, or complain and return None: whatever is in the way, training goes on without a profile."""
    try:
        return _begin(run, name, step=step)
    except Busy as error:
        warn_once("profile-busy", f"profile {name}: not taken, {error}; profiles of one process cannot overlap")
    except (CannotRecord, MLDiagnosticsError) as error:
        warn_once("profile-not-started", f"profile {name}: not taken, {error}")
    except Exception as error:  # noqa: BLE001 - whatever a framework raises must not reach the training
        warn_once("profile-not-started", f"profile {name}: not taken, {type(error).__name__}: {error}")
    return None


def _begin(run: MLRun, name: str, *, step: int | None) -> ProfileSession:
    if _backlog.is_full:
        raise CannotRecord(
            f"{_backlog.waiting_bytes >> 20} MiB of earlier profiles wait to be stored in {run.directory}; "
            "check that storage, or profile less often"
        )
    adapter = recorder(run.framework.value)
    session = ProfileSession(run, name, adapter, queue(f"profile {name}"), step=step)
    _unstored.add(session)
    try:
        session.begin()
    except BaseException:
        session.abandon()
        raise
    _finish_with(run)
    return session


def _finish_with(run: MLRun) -> None:
    """See that the end of the run waits for its traces."""
    global _watched  # noqa: PLW0603 - there is one run at a time
    if _watched is None or _watched() is not run:
        _watched = weakref.ref(run)
        run.on_close(finish_all)


def finish_all() -> None:
    """End what still records and wait, within a bound, until everything is stored."""
    deadline = time.monotonic() + _AT_EXIT_S
    for session in tuple(_unstored):
        session.end()
    for session in tuple(_unstored):
        if not session.wait(max(deadline - time.monotonic(), 0)):
            session.spool(f"it was not stored within {_AT_EXIT_S:.0f} s")


def _forget() -> None:
    """Begin anew in a forked child: the sessions, and the threads that work for them, stayed with the parent."""
    global _unstored, _backlog, _watched
    _unstored, _backlog, _watched = set(), Backlog(_MAX_WAITING_BYTES), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
