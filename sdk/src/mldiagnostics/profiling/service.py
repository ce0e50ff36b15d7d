"""The profiler service for frameworks that have none: what JAX's server answers, answered by any recorder.

Protocol: `tsl/profiler/protobuf/profiler_service.proto`. Like JAX's server it records one session at a time, ends one
early on Terminate, remembers a Terminate that came before its session, and drops a session whose caller has left.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

from mldiagnostics.capture.messages import SERVICE
from mldiagnostics.capture.wire import WireError
from mldiagnostics.errors import MissingExtraError, MLDiagnosticsError
from mldiagnostics.layout import PROFILE_DIR, trace_key
from mldiagnostics.profiling.claim import claim
from mldiagnostics.profiling.recorder import Busy, CannotRecord
from mldiagnostics.profiling.requests import ProfileRequest, read_profile_request, read_terminate_request, write_answer
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from mldiagnostics.profiling.claim import ProfilerClaim
    from mldiagnostics.profiling.recorder import TraceRecorder

try:
    import grpc
except ModuleNotFoundError as error:
    raise MissingExtraError(extra="capture", needed_for="a profiler server of our own") from error

_BUSY = "Another profiling session active."
"""JAX's words, by which callers know that it passes."""

_NO_SNAPSHOT = "No continuous profiling session found."
_WORKERS = 4
_MAX_REQUEST_BYTES = 64 * 1024
_REMEMBERED = 64
_LONGEST_LEAD_S = 600.0


class ProfilerService:
    """A server on `port` of all interfaces that records with `recorder`; 0 lets the system choose the port."""

    kind = "mldiagnostics"

    def __init__(self, recorder: TraceRecorder, port: int) -> None:
        self.version = recorder.version
        self._recorder = recorder
        self._sessions = _SessionTable()
        self._server = grpc.server(
            ThreadPoolExecutor(_WORKERS, thread_name_prefix="mldiag-profiler"),
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", _MAX_REQUEST_BYTES),
            ],
        )
        methods = {"Profile": self._profile, "GetSnapshot": self._get_snapshot, "Terminate": self._terminate}
        handlers: dict[str, Any] = {
            name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = self._server.add_insecure_port(f"[::]:{port}")
        self._server.start()

    def stop(self) -> None:
        """Hang up; a capture under way is dropped."""
        self._server.stop(None)

    def _profile(self, encoded: bytes, context: Any) -> bytes:
        try:
            request = read_profile_request(encoded)
            held = claim("an on-demand capture")
        except WireError as error:
            _abort(context, "INVALID_ARGUMENT", f"no ProfileRequest: {error}")
        except Busy:
            _abort(context, "INTERNAL", _BUSY)
        try:
            trace = self._record(request, held, context)
        except Busy:
            _abort(context, "INTERNAL", _BUSY)
        except CannotRecord as error:
            _abort(context, "INTERNAL", str(error))
        finally:
            held.release()
        return self._deliver(request, trace, context)

    def _record(self, request: ProfileRequest, held: ProfilerClaim, context: Any) -> bytes:
        """Record from the wished start until the duration is over, somebody ends the session, or the caller leaves."""
        ended = self._sessions.begin(request.session)
        try:
            if not context.add_callback(ended.set):
                raise CannotRecord("the caller has left")
            ended.wait(min(max(request.start_ns - time.time_ns(), 0) / 1e9, _LONGEST_LEAD_S))
            recording = self._recorder.start()
            ended.wait(request.duration_ms / 1000)
        finally:
            self._sessions.over()
        held.collect()
        return recording.stop()

    def _deliver(self, request: ProfileRequest, trace: bytes, context: Any) -> bytes:
        """Answer with the trace, or write it where the caller wants it; never over another file."""
        if request.wants_trace:
            return write_answer(trace)
        log_directory, found, rest = request.root.rpartition(PROFILE_DIR)
        if not found or rest or not log_directory:
            _abort(context, "INTERNAL", f"no trace can be written: {request.root!r} does not end in {PROFILE_DIR}")
        try:
            open_store(log_directory.rstrip("/")).put(trace_key(request.session, _file_stem(request.host)), trace)
        except MLDiagnosticsError as error:
            _abort(context, "INTERNAL", f"the trace could not be written: {error}")
        return b""

    def _get_snapshot(self, _: bytes, context: Any) -> NoReturn:
        _abort(context, "NOT_FOUND", _NO_SNAPSHOT)

    def _terminate(self, encoded: bytes, context: Any) -> bytes:
        try:
            self._sessions.end(read_terminate_request(encoded))
        except WireError as error:
            _abort(context, "INVALID_ARGUMENT", f"no TerminateRequest: {error}")
        return b""


class _SessionTable:
    """The session that runs, and those that were asked to end before they began; the latest of these are remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[str, threading.Event] | None = None
        self._called_off: deque[str] = deque(maxlen=_REMEMBERED)

    def begin(self, session: str) -> threading.Event:
        """Return what is set once the session is to end."""
        ended = threading.Event()
        with self._lock:
            self._running = session, ended
            if session in self._called_off:
                self._called_off.remove(session)
                ended.set()
        return ended

    def end(self, session: str) -> None:
        """End the session, now or as soon as it begins."""
        with self._lock:
            if self._running is not None and self._running[0] == session:
                self._running[1].set()
            else:
                self._called_off.append(session)

    def over(self) -> None:
        """Forget the session that ran."""
        with self._lock:
            self._running = None


def _file_stem(host: str) -> str:
    """Return the name of a host's file as JAX's server makes it: an address `10.0.0.7:9999` becomes `10.0.0.7_9999`."""
    return host.replace(":", "_")


def _abort(context: Any, code: str, details: str) -> NoReturn:
    context.abort(getattr(grpc.StatusCode, code), details)
    raise AssertionError("abort raises")
