"""The interface of a framework's profiler, and its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class CannotRecord(Exception):
    """A recording cannot start, or failed; the message has reason and cure."""


class Busy(CannotRecord):
    """Another profiling session is active; a retry may succeed."""


@dataclass(frozen=True, slots=True)
class NativeRecording:
    """A session of XLA's profiler, which JAX and torch_xla share.

    Attributes:
        session: The framework's own object.
        profiler: Its name, for messages.
        other: A call that starts another session.
    """

    session: Any
    profiler: str
    other: str

    def stop(self) -> bytes:
        """See `TraceRecording.stop`; the framework releases the GIL meanwhile."""
        try:
            return bytes(self.session.stop())
        except Exception as error:
            if "profiling session active" in str(error):
                raise Busy(f"another profiling session is active (an on-demand capture or {self.other})") from error
            raise CannotRecord(f"{self.profiler} failed: {error}") from error


class TraceRecording(Protocol):
    """A recording under way."""

    def stop(self) -> bytes:
        """Stop and return the trace, a serialised XSpace.

        May take seconds, and be called from another thread. Raises `CannotRecord` if nothing was recorded.
        """


class TraceRecorder(Protocol):
    """The profiler of one framework in this process."""

    @property
    def framework(self) -> str:
        """The framework's name, for messages."""

    @property
    def version(self) -> str:
        """The framework's version."""

    def start(self) -> TraceRecording:
        """Start a recording. Raises `Busy` while another is active, or `CannotRecord`."""

    def serve(self, port: int) -> ProfilerServer:
        """Serve on-demand captures at `port` on all interfaces.

        Raises `CannotRecord` or the framework's error.
        """


class ProfilerServer(Protocol):
    """A running profiler server, which may stop when it is garbage-collected."""

    @property
    def kind(self) -> str:
        """The server's make: `jax`, `tensorflow` or `mldiagnostics`."""

    @property
    def version(self) -> str:
        """The version of its framework; of jaxlib for JAX."""

    @property
    def stop(self) -> Callable[[], None] | None:
        """Stops it; None if it runs until its process ends."""
