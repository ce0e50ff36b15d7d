"""What a capture is given and what it gives back: targets and options in, one outcome per target out."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol

from mldiagnostics.errors import ConfigurationError

MAX_TRACE_BYTES = 256 * 1024 * 1024
"""A trace over this is refused while it arrives, unless the caller sets another cap."""


class _Word(str, Enum):
    """A word that travels into status, files and messages as itself."""

    __str__ = str.__str__


class Delivery(_Word):
    """Who stores the trace: the caller, from the answer, or the profiled process itself."""

    AUTO = "Auto"
    OPERATOR = "Operator"
    WORKLOAD = "Workload"


class TargetState(_Word):
    """Where a target ended; a cancelled one may still have a file, of what was recorded until then."""

    CAPTURED = "Captured"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"


class ServerProbe(_Word):
    """What the probe before the dial said about the profiler server."""

    SNAPSHOTS = "Snapshots"
    """Knows GetSnapshot (jaxlib >= 0.9, TensorFlow 2.21): returns traces and never freezes its process."""
    OLD = "Old"
    """Does not know it (older ones): may freeze its process, may not return traces."""


class Reason(_Word):
    """Why a target ended as it did; each failure has one of its own."""

    CAPTURED = "Captured"
    NOTHING_LISTENS = "NothingListens"
    """The host refused the connection."""
    UNREACHABLE = "Unreachable"
    """No route, no such name, or nobody answered the connection attempt."""
    NOT_A_PROFILER = "NotAProfiler"
    """Something else listens on the port."""
    SILENT = "Silent"
    """The port accepts connections and says nothing: a stopped process, or a service that waits for its client."""
    SERVER_MAY_DEADLOCK = "ServerMayDeadlock"
    """An old server: a capture could freeze its process for good, so it was left alone."""
    SERVER_TOO_OLD = "ServerTooOld"
    """The server cannot return traces in its answer and was given no bucket to write to."""
    BUSY = "Busy"
    """Another profiling session held the process until the deadline."""
    CONNECTION_LOST = "ConnectionLost"
    """The process ended, or the network broke, during the capture."""
    SLOW = "Slow"
    """The deadline came before the host had recorded and serialised its trace."""
    TRACE_TOO_LARGE = "TraceTooLarge"
    EMPTY_TRACE = "EmptyTrace"
    """The process did nothing worth recording."""
    BAD_ANSWER = "BadAnswer"
    """The answer is not a trace."""
    SERVER_ERROR = "ServerError"
    """The profiler itself reported an error."""
    WORKLOAD_CANNOT_WRITE = "WorkloadCannotWrite"
    """The profiled process could not write its trace where it was told to."""
    WRONG_POD = "WrongPod"
    """The address belongs, or belonged, to something else than the chosen target."""
    FILE_EXISTS = "FileExists"
    """Another capture's file has the name; it was left untouched."""
    STORE_MISSING = "StoreMissing"
    STORE_FORBIDDEN = "StoreForbidden"
    STORE_UNREACHABLE = "StoreUnreachable"
    STORE_FULL = "StoreFull"
    STORE_SLOW = "StoreSlow"
    """The trace was recorded, but storing it, or those before it, took until the deadline."""
    STORE_ERROR = "StoreError"
    """The store failed in a way that has no name of its own."""
    UNEXPECTED = "Unexpected"
    """A fault of this package or of a callable that it was given; the log has the traceback."""
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    """For callers that are restarted: the capture was running when its process ended."""


@dataclass(frozen=True, slots=True)
class Target:
    """One profiler server.

    `host` is an IP address or a name; `stem` names the trace file and is the host that XProf shows.
    `workload_root` is the log directory as the profiled process itself sees it, for traces that it writes.
    `server_ok` says that the process is known not to freeze although its server is old, because TensorFlow is
    importable in it or the server is another make. `labels` are the caller's own and come back untouched.
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
    """How to capture.

    `session` must never have been used before: servers remember what was asked of an id. `start_ns` is the common
    start in Unix nanoseconds; without one, and when it has passed, a target starts at once. `deadline_s` counts from
    the start of the run and covers recording, serialisation and storing of each target. An answer that has begun must
    be read within `answer_timeout_s`, since meanwhile it occupies memory that others wait for.

    Raises `ConfigurationError` for a duration of less than 1 ms.
    """

    session: str
    duration_ms: int
    deadline_s: float
    start_ns: int | None = None
    tracers: Tracers = Tracers()
    delivery: Delivery = Delivery.AUTO
    allow_old_server: bool = False
    max_trace_bytes: int = MAX_TRACE_BYTES
    answer_timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if self.duration_ms < 1:
            raise ConfigurationError(f"a capture of {self.duration_ms} ms records nothing: give at least 1 ms")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one target ended.

    `file` is where the trace lies (`bytes` and `sha256` only if it passed through here); `start_ns` and `stop_ns` are
    the host's own account of its recording, in Unix nanoseconds.
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
    """What a sink says about a trace that is safely stored; `mldiagnostics.store.Stored` is one."""

    @property
    def bytes(self) -> int:
        """Size of the file."""

    @property
    def sha256(self) -> str:
        """Lower-case hex digest of the file."""

    @property
    def url(self) -> str:
        """Where the file lies."""


TraceSink = Callable[[Target, memoryview], Coroutine[Any, Any, StoredTrace]]
"""Stores one trace; raises a `StoreError`. Called again after one that may pass, until the target's deadline."""

Verify = Callable[[Target], Coroutine[Any, Any, str | None]]
"""Says what is wrong with a target's address, if anything; asked before the dial and again after the answer."""


class Control:
    """The caller's hand on a running capture."""

    def __init__(self) -> None:
        self._terminated = asyncio.Event()

    @property
    def terminated(self) -> bool:
        """Whether recording was asked to end."""
        return self._terminated.is_set()

    def terminate(self) -> None:
        """End all recording now; what was recorded is stored and its outcomes say `Cancelled`."""
        self._terminated.set()

    async def wait(self) -> None:
        """Return once `terminate` was called."""
        await self._terminated.wait()
