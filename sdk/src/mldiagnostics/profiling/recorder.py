"""What a framework must be able to do to be profiled, and how it says that it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class CannotRecord(Exception):
    """A recording cannot begin, or did not happen; the message says why and what to do."""


class Busy(CannotRecord):
    """Another profiling session has the process; that passes."""


class TraceRecording(Protocol):
    """A recording under way."""

    def stop(self) -> bytes:
        """End it and return the trace, a serialised XSpace; may take seconds, and be called from another thread.

        Raises `CannotRecord` if nothing was recorded after all.
        """


class TraceRecorder(Protocol):
    """The profiler of one framework, as it lies in this process."""

    @property
    def framework(self) -> str:
        """The framework's name, for people."""

    @property
    def version(self) -> str:
        """The framework's version."""

    def start(self) -> TraceRecording:
        """Begin to record. Raises `Busy` while another session does, and `CannotRecord`."""

    def serve(self, port: int) -> ProfilerServer:
        """Answer on-demand captures at `port` on all interfaces. Raises `CannotRecord` or the framework's error."""


class ProfilerServer(Protocol):
    """A running profiler server; whoever wants it to run keeps it."""

    @property
    def kind(self) -> str:
        """Whose server it is, for those who capture: `jax`, `tensorflow` or `mldiagnostics`."""

    @property
    def version(self) -> str:
        """The version of the framework behind it; of jaxlib for JAX."""

    @property
    def stop(self) -> Callable[[], None] | None:
        """Ends it; None for a make that only ends with its process."""
