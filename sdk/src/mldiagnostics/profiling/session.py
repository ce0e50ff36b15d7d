"""One programmatic profile of this process: claimed, recorded, collected off the caller's thread, stored."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mldiagnostics.complaints import complain
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.profiling.claim import Claim, claim
from mldiagnostics.profiling.frameworks import recorder
from mldiagnostics.profiling.naming import host_stem
from mldiagnostics.profiling.recorder import CannotRecord
from mldiagnostics.profiling.storing import store_trace

if TYPE_CHECKING:
    from mldiagnostics.profiling.recorder import Recording
    from mldiagnostics.run import MLRun

_BEGINS_TO_STOP_S = 1.0
_COLLECTING_S = 10.0
"""How long a new profile waits for the previous one to leave the profiler."""

_AT_EXIT_S = 20.0
"""How long the end of a run waits for traces that are not stored yet: Kubernetes gives 30 s in all."""

_MAX_UNSTORED = 2
"""Traces in memory at a time: with a slow store more would only use up the job's memory."""

_unstored: set[ProfileSession] = set()
_watched: weakref.ref[MLRun] | None = None


class ProfileSession:
    """A recording under way and what becomes of it."""

    def __init__(self, run: MLRun, name: str, recording: Recording, held: Claim, *, step: int | None) -> None:
        self.name = name
        self._run, self._recording, self._held, self._step = run, recording, held, step
        self._start_ns = time.time_ns()
        # Unlike events, queues may be used by a signal's handler while its thread does so.
        self._wanted: SimpleQueue[None] = SimpleQueue()
        self._begun: SimpleQueue[None] = SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._finish, name="mldiagnostics-profile", daemon=True)
        self._thread.start()  # now: while the interpreter shuts down it starts no thread any more

    def end(self) -> None:
        """Stop recording and return; the trace is collected and stored by a thread of its own."""
        if self._ended:
            return
        self._ended = True
        self._wanted.put(None)
        with contextlib.suppress(Empty):
            self._begun.get(timeout=_BEGINS_TO_STOP_S)  # so that what the caller does next is not in the trace

    def wait(self, timeout_s: float) -> bool:
        """Wait until the trace is stored or given up; false if that takes longer."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _finish(self) -> None:
        self._wanted.get()
        try:
            trace = self._collect()
            url = store_trace(self._run.directory, self.name, host_stem(self._run.origin), trace)
        except (CannotRecord, MLDiagnosticsError) as error:
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - a framework's own, in a thread that nobody watches
            self._failed(f"{type(error).__name__}: {error}")
        else:
            self._note("stored", file=url, bytes=len(trace))
        finally:
            _unstored.discard(self)

    def _collect(self) -> bytes:
        self._begun.put(None)
        try:
            return self._recording.stop()
        finally:
            self._held.release()

    def _failed(self, reason: str) -> None:
        complain("profile-lost", f"the profile {self.name} is lost: {reason}")
        self._note("failed", reason=reason)

    def _note(self, state: str, **more: object) -> None:
        payload = {"state": state, "start_ns": self._start_ns, "stop_ns": time.time_ns(), **more}
        self._run.recording.append("session", self.name, step=self._step, payload=payload)


def begin(run: MLRun, name: str, *, step: int | None) -> ProfileSession | None:
    """Begin to record, or complain and return None: whatever is in the way, training goes on without a profile."""
    try:
        session = _begin(run, name, step=step)
    except (CannotRecord, MLDiagnosticsError) as error:
        complain("profile-not-started", f"the profile {name} was not taken: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a framework raises must not reach the training
        complain("profile-not-started", f"the profile {name} was not taken: {type(error).__name__}: {error}")
    else:
        run.recording.append("session", name, step=step, payload={"state": "recording"})
        return session
    return None


def _begin(run: MLRun, name: str, *, step: int | None) -> ProfileSession:
    if len(_unstored) >= _MAX_UNSTORED:
        raise CannotRecord(f"{len(_unstored)} earlier ones are not stored yet: is {run.directory} slow?")
    adapter = recorder(run.framework.value)
    held = claim(f"profile {name}", patience_s=_COLLECTING_S if _unstored else 0)
    try:
        session = ProfileSession(run, name, adapter.start(), held, step=step)
    except BaseException:
        held.release()
        raise
    _unstored.add(session)
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
            complain("profile-late", f"the profile {session.name} was not stored within {_AT_EXIT_S:.0f} s and is lost")
