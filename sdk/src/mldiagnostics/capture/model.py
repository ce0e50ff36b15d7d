"""Input and output of a capture: targets and options, one outcome per target."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol

from mldiagnostics.errors import ConfigurationError

MAX_TRACE_BYTES = 256 * 1024 * 1024
"""Larger traces are rejected before they arrive, unless the caller sets another limit."""

LEAST_PROGRESS_BYTES = 512 * 1024
"""A response must bring as much in each period of `Options.answer_timeout_s`, or its rest."""


class _Word(str, Enum):
    """A string enum: status, files and messages hold the value."""

    __str__ = str.__str__


class Delivery(_Word):
    """The process that stores the trace: the caller or the profiled process."""

    AUTO = "Auto"
    OPERATOR = "Operator"
    WORKLOAD = "Workload"


class Recording(_Word):
    """The time that a capture records."""

    NOW = "Now"
    """A new recording, of the requested duration."""
    PAST = "Past"
    """The events that the program has recorded continuously until now; they leave its buffer."""


class TargetState(_Word):
    """Final state of a target; a cancelled one may have a file."""

    CAPTURED = "Captured"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"


class ServerProbe(_Word):
    """Result of the probe of a profiler server."""

    SNAPSHOTS = "Snapshots"
    """Has GetSnapshot (jaxlib >= 0.9, TensorFlow 2.21): returns traces and never freezes its process."""
    OLD = "Old"
    """Has no GetSnapshot: may freeze its process, and may not return traces."""


class Reason(_Word):
    """Reason for the final state of a target; each kind of failure has its own."""

    CAPTURED = "Captured"
    NOTHING_LISTENS = "NothingListens"
    """The host refused the connection."""
    UNREACHABLE = "Unreachable"
    """No route, no such host name, or the connection timed out."""
    NOT_A_PROFILER = "NotAProfiler"
    """Another service listens on the port."""
    SILENT = "Silent"
    """The port accepts connections but sends no response: the process is stopped, or it is another service."""
    SERVER_MAY_DEADLOCK = "ServerMayDeadlock"
    """Not captured: an old server, which a capture could freeze with its process."""
    SERVER_TOO_OLD = "ServerTooOld"
    """The server cannot return traces in its response and has no bucket to write to."""
    BUSY = "Busy"
    """Another profiling session ran in the process until the deadline."""
    CONTINUOUS_PROFILING_ACTIVE = "ContinuousProfilingActive"
    """The program records continuously, so that nothing else can be recorded; `Recording.PAST` takes that recording."""
    NO_CONTINUOUS_PROFILING = "NoContinuousProfiling"
    """`Recording.PAST`: the program does not record continuously."""
    CONNECTION_LOST = "ConnectionLost"
    """The process ended, or the network broke, during the capture."""
    SLOW = "Slow"
    """The host had not sent its trace by the deadline, or sent it too slowly."""
    TRACE_TOO_LARGE = "TraceTooLarge"
    EMPTY_TRACE = "EmptyTrace"
    """The trace has no events."""
    BAD_ANSWER = "BadAnswer"
    """The response is not a trace."""
    SERVER_ERROR = "ServerError"
    """The profiler itself reported an error."""
    WORKLOAD_CANNOT_WRITE = "WorkloadCannotWrite"
    """The profiled process could not write its trace to the requested directory."""
    WRONG_POD = "WrongPod"
    """The address belongs, or belonged, to another pod."""
    FILE_EXISTS = "FileExists"
    """A file of another capture has this name; it was not changed."""
    STORE_MISSING = "StoreMissing"
    STORE_FORBIDDEN = "StoreForbidden"
    STORE_UNREACHABLE = "StoreUnreachable"
    STORE_FULL = "StoreFull"
    STORE_SLOW = "StoreSlow"
    """The trace was recorded but not stored by the deadline, because the store was slow."""
    STORE_NOT_SHARED = "StoreNotShared"
    """The trace was stored, in storage that the caller's next process cannot read; set by callers that restart."""
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    """The traces of other captures used the memory until the deadline; the trace was recorded but not read."""
    STORE_ERROR = "StoreError"
    """The store failed with another error."""
    UNEXPECTED = "Unexpected"
    """A bug in this package or in a callable of the caller; the log has the traceback."""
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    """The caller's process ended during the capture; set by callers that restart."""


@dataclass(frozen=True, slots=True)
class Target:
    """One profiler server.

    Args:
        host: IP address or host name.
        port: port of the profiler server.
        stem: name of the trace file; XProf shows it as the host.
        labels: the caller's own values, returned unchanged.
        workload_root: log directory as the profiled process sees it, for traces that it writes.
        server_ok: an old server cannot freeze the process, because TensorFlow is importable in it or the server is
            another implementation.
    """

    host: str
    port: int
    stem: str
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    workload_root: str | None = None
    server_ok: bool = False

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tracers:
    """Levels of the profiler's tracers: host 0-3, device 0-1, python 0-1."""

    host: int = 2
    device: int = 1
    python: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a capture.

    Args:
        session: name of the session; it must be new, because servers remember the requests of a session.
        duration_ms: length of the recording in milliseconds, at least 1.
        deadline_s: seconds from the start of the run, for recording, serialisation and storing of all targets.
        start_ns: common start in Unix nanoseconds; without one, or after it, a target starts at once.
        tracers: levels of the profiler's tracers.
        delivery: the process that stores the trace.
        recording: the time that is recorded; the past has no duration and no start.
        allow_old_server: capture old servers too, which may freeze their process.
        max_trace_bytes: reject larger traces.
        answer_timeout_s: seconds in which 512 KiB of a response, or its rest, must arrive; a slower server fails,
            because its response uses memory that other targets wait for.
        cancel_timeout_s: seconds after a request to terminate in which a trace must have arrived.

    Raises:
        ConfigurationError: `duration_ms` is below 1, or the process is to store its past, which servers return only.
    """

    session: str
    duration_ms: int
    deadline_s: float
    start_ns: int | None = None
    tracers: Tracers = Tracers()
    delivery: Delivery = Delivery.AUTO
    recording: Recording = Recording.NOW
    allow_old_server: bool = False
    max_trace_bytes: int = MAX_TRACE_BYTES
    answer_timeout_s: float = 5.0
    cancel_timeout_s: float = 8.0

    def __post_init__(self) -> None:
        if self.duration_ms < 1:
            raise ConfigurationError(f"duration_ms: {self.duration_ms} ms is too short; pass at least 1 ms")
        if self.recording is Recording.PAST and self.delivery is Delivery.WORKLOAD:
            raise ConfigurationError("recording: Past is returned to the caller; use another delivery than Workload")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Final state of one target.

    `file` is the URL of the trace; `bytes` and `sha256` are set only if the caller stored it. `start_ns` and `stop_ns`
    are the recording's times from the trace, in Unix nanoseconds by the host's clock.
    """

    target: Target
    state: TargetState
    reason: Reason
    message: str = ""
    file: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    start_ns: int | None = None
    stop_ns: int | None = None
    server: ServerProbe | None = None


class StoredTrace(Protocol):
    """A stored trace, as a sink returns it; `mldiagnostics.store.Stored` is one."""

    @property
    def bytes(self) -> int:
        """Size of the file in bytes."""

    @property
    def sha256(self) -> str:
        """Hex digest of the file in lower case."""

    @property
    def url(self) -> str:
        """URL of the file."""


TraceSink = Callable[[Target, memoryview], Coroutine[Any, Any, StoredTrace]]
"""Stores one trace or raises a `StoreError`; retried until the deadline unless the error is permanent."""

Verify = Callable[[Target], Coroutine[Any, Any, str | None]]
"""Returns the problem with a target's address, or None; called before the connection and after the response."""


class Control:
    """A switch for the caller to terminate a running capture."""

    def __init__(self) -> None:
        self._terminated = asyncio.Event()

    @property
    def terminated(self) -> bool:
        """Whether `terminate` was called."""
        return self._terminated.is_set()

    def terminate(self) -> None:
        """Stop all recordings.

        Traces that arrive within `cancel_timeout_s` are stored with the state Cancelled.
        """
        self._terminated.set()

    async def wait(self) -> None:
        """Wait until `terminate` is called."""
        await self._terminated.wait()
