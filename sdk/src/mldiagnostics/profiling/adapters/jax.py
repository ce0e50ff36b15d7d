"""JAX: the profiler that lies in jaxlib.

Recorded with jaxlib's own session and not with `jax.profiler.start_trace`: that one notices another session only when
it stops, and then never starts again in the process; its traces go to a file and are converted on the caller's thread.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
from jaxlib.version import __version__ as jaxlib_version

from mldiagnostics.errors import MissingExtraError
from mldiagnostics.profiling.recorder import Busy, CannotRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.profiling.recorder import ProfilerServer

_FIRST_SAFE_JAXLIB = (0, 9)
"""Before, the first capture from outside freezes the process unless TensorFlow can be imported."""

_HOST_LEVEL = 2


class JaxRecorder:
    """Records whatever JAX does in this process."""

    framework = "JAX"
    version = jaxlib_version

    @cached_property
    def _native(self) -> Any:
        """The module of jaxlib with the profiler; where it lies has changed once."""
        internal = sys.modules["jax._src.profiler"]
        try:
            found = getattr(internal, "_profiler", None) or internal.xla_client.profiler
            _ = found.ProfilerSession, found.ProfileOptions, found.start_server
        except AttributeError:
            raise CannotRecord(f"the profiler of JAX {jax.__version__} is not where it was: report this") from None
        return found

    def start(self) -> JaxRecording:
        """See `Recorder.start`; never initialises JAX's backends."""
        self._make_sure_that_it_is_free()
        return JaxRecording(self._session(_HOST_LEVEL))

    def serve(self, port: int) -> ProfilerServer:
        """See `Recorder.serve`; JAX's own server, but ours where a capture by that one would freeze the process."""
        if _numbers(jaxlib_version) < _FIRST_SAFE_JAXLIB and importlib.util.find_spec("tensorflow") is None:
            return self._safe_server(port)
        if "requires_backend" in inspect.signature(jax.profiler.start_server).parameters:
            jax.profiler.start_server(port, requires_backend=False)
            return JaxServer(jax.profiler.stop_server)
        kept = [self._native.start_server(port)]  # the public function would initialise the backends
        return JaxServer(kept.clear)

    def _safe_server(self, port: int) -> ProfilerServer:
        try:
            from mldiagnostics.profiling.service import ProfilerService  # noqa: PLC0415 - needs the extra `capture`
        except MissingExtraError as error:
            raise CannotRecord(
                f"the server of jaxlib {jaxlib_version} would freeze this process for good in its first capture: "
                f"upgrade jaxlib to 0.9, install TensorFlow, or let us serve: {error}"
            ) from error
        return ProfilerService(self, port)

    def _make_sure_that_it_is_free(self) -> None:
        """Ask with a session that is over at once (0.1 ms): one that has no room says so only when it is stopped."""
        try:
            self._session(0).stop()
        except Exception as error:
            raise _refusal(error) from error

    def _session(self, host_level: int) -> Any:
        options = self._native.ProfileOptions()
        options.host_tracer_level, options.python_tracer_level = host_level, 0
        return self._native.ProfilerSession(options)


class JaxRecording:
    """A session of jaxlib's profiler."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def stop(self) -> bytes:
        """See `Recording.stop`; jaxlib lets other threads run meanwhile."""
        try:
            return bytes(self._session.stop())
        except Exception as error:
            raise _refusal(error) from error


@dataclass(frozen=True, slots=True)
class JaxServer:
    """jaxlib's profiler server."""

    stop: Callable[[], None]
    kind: str = "jax"
    version: str = jaxlib_version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _refusal(error: Exception) -> CannotRecord:
    if "profiling session active" in str(error):
        return Busy("another profiling session (an on-demand capture, jax.profiler.start_trace) has the process")
    return CannotRecord(f"JAX's profiler failed: {error}")
