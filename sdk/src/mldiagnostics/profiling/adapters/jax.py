"""JAX: the profiler in jaxlib.

It records with jaxlib's own session, not with `jax.profiler.start_trace`: that notices another session only when it
stops, and then never starts again in the process; it writes traces to files and converts them on the caller's thread.
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
from mldiagnostics.profiling.recorder import CannotRecord, NativeRecording

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.profiling.recorder import ProfilerServer

_FIRST_SAFE_JAXLIB = (0, 9)
"""Older versions freeze the process at the first capture if TensorFlow is missing."""

_HOST_LEVEL = 2


class JaxRecorder:
    """Records JAX in this process."""

    framework = "JAX"
    version = jaxlib_version

    @cached_property
    def _native(self) -> Any:
        """The module of jaxlib with the profiler; its location has changed once."""
        internal = sys.modules["jax._src.profiler"]
        try:
            module = getattr(internal, "_profiler", None) or internal.xla_client.profiler
            _ = module.ProfilerSession, module.ProfileOptions, module.start_server
        except AttributeError:
            raise CannotRecord(f"JAX {jax.__version__}: its profiler has moved; please report this") from None
        return module

    def start(self) -> NativeRecording:
        """See `TraceRecorder.start`; never initialises JAX's backends."""
        self._session(0).stop()  # a session reports another one only when it is stopped (0.1 ms)
        return self._session(_HOST_LEVEL)

    def serve(self, port: int) -> ProfilerServer:
        """See `TraceRecorder.serve`; starts JAX's own server, or ours where that freezes."""
        if _major_minor(jaxlib_version) < _FIRST_SAFE_JAXLIB and importlib.util.find_spec("tensorflow") is None:
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
                f"the server of jaxlib {jaxlib_version} would freeze this process for good at the first capture; "
                f"upgrade jaxlib to 0.9, install TensorFlow, or install the extra: {error}"
            ) from error
        return ProfilerService(self, port)

    def _session(self, host_level: int) -> NativeRecording:
        options = self._native.ProfileOptions()
        options.host_tracer_level, options.python_tracer_level = host_level, 0
        try:
            session = self._native.ProfilerSession(options)
        except Exception as error:
            raise CannotRecord(f"JAX's profiler failed: {error}") from error
        return NativeRecording(session, "JAX's profiler", "jax.profiler.start_trace")


@dataclass(frozen=True, slots=True)
class JaxServer:
    """jaxlib's profiler server."""

    stop: Callable[[], None]
    kind: str = "jax"
    version: str = jaxlib_version


def _major_minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
