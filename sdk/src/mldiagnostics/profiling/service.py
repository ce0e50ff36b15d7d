"""The profiler service for frameworks without a server of their own.

Protocol: `tsl/profiler/protobuf/profiler_service.proto`. Like JAX's server it records one session at a time, stops it
on Terminate, also on one that arrives before the session, and drops a session whose caller has disconnected.
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
from mldiagnostics.profiling.requests import (
    ProfileRequest,
    encode_response,
    read_profile_request,
    read_terminate_request,
)
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from mldiagnostics.profiling.claim import ProfilerClaim
    from mldiagnostics.profiling.recorder import TraceRecorder

try:
    import grpc
except ModuleNotFoundError as error:
    raise MissingExtraError(extra="capture", needed_for="the profiler server of mldiagnostics") from error

_BUSY = "Another profiling session active."
"""JAX's message, by which callers know that a retry may succeed."""

_NO_SNAPSHOT = "No continuous profiling session found."
_WORKERS = 4
_MAX_REQUEST_BYTES = 64 * 1024
_MAX_CANCELLED = 64
_LONGEST_LEAD_S = 600.0


class ProfilerService:
    """A server on all interfaces that uses `recorder`; port 0 picks a free one."""

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
        """Close all connections; a running capture is dropped."""
        self._server.stop(None)

    def _profile(self, encoded: bytes, context: Any) -> bytes:
        try:
            request = read_profile_request(encoded)
            held = claim("an on-demand capture")
        except WireError as error:
            _abort(context, "INVALID_ARGUMENT", f"not a ProfileRequest: {error}")
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
        """Record from the requested start for the duration, or until Terminate.

        Also stops when the caller disconnects.
        """
        stop = self._sessions.start(request.session)
        try:
            if not context.add_callback(stop.set):
                raise CannotRecord("the caller has disconnected")
            stop.wait(min(max(request.start_ns - time.time_ns(), 0) / 1e9, _LONGEST_LEAD_S))
            recording = self._recorder.start()
            stop.wait(request.duration_ms / 1000)
        finally:
            self._sessions.clear()
        held.collect()
        return recording.stop()

    def _deliver(self, request: ProfileRequest, trace: bytes, context: Any) -> bytes:
        """Return the trace, or write it to the requested file, never over another."""
        if request.wants_trace:
            return encode_response(trace)
        log_directory, separator, rest = request.root.rpartition(PROFILE_DIR)
        if not separator or rest or not log_directory:
            _abort(context, "INTERNAL", f"repository_root {request.root!r}: does not end in {PROFILE_DIR}")
        try:
            open_store(log_directory.rstrip("/")).put(trace_key(request.session, _file_stem(request.host)), trace)
        except MLDiagnosticsError as error:
            _abort(context, "INTERNAL", f"cannot write the trace: {error}")
        return b""

    def _get_snapshot(self, _: bytes, context: Any) -> NoReturn:
        _abort(context, "NOT_FOUND", _NO_SNAPSHOT)

    def _terminate(self, encoded: bytes, context: Any) -> bytes:
        try:
            self._sessions.stop(read_terminate_request(encoded))
        except WireError as error:
            _abort(context, "INVALID_ARGUMENT", f"not a TerminateRequest: {error}")
        return b""


class _SessionTable:
    """The running session, and the latest sessions stopped before their start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: tuple[str, threading.Event] | None = None
        self._cancelled: deque[str] = deque(maxlen=_MAX_CANCELLED)

    def start(self, session: str) -> threading.Event:
        """Return the event that is set to stop the session."""
        stop = threading.Event()
        with self._lock:
            self._running = session, stop
            if session in self._cancelled:
                self._cancelled.remove(session)
                stop.set()
        return stop

    def stop(self, session: str) -> None:
        """Stop the session, now or as soon as it starts."""
        with self._lock:
            if self._running is not None and self._running[0] == session:
                self._running[1].set()
            else:
                self._cancelled.append(session)

    def clear(self) -> None:
        """Remove the running session."""
        with self._lock:
            self._running = None


def _file_stem(host: str) -> str:
    """Return the name of a host's file as JAX's server does: `10.0.0.7_9999`."""
    return host.replace(":", "_")


def _abort(context: Any, code: str, details: str) -> NoReturn:
    context.abort(getattr(grpc.StatusCode, code), details)
    raise AssertionError("abort raises")
