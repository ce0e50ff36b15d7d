"""The profiler server of this process: started once, on a free port."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.capture import command_buffers
from mldiagnostics.capture.addresses import DEFAULT_PORT, MAX_PORT
from mldiagnostics.configs.detection import detect
from mldiagnostics.diagnostics import warn_ignored, warn_once
from mldiagnostics.lifecycle.current_run import current
from mldiagnostics.pipeline.records import ON_DEMAND
from mldiagnostics.profiling.frameworks import recorder_once_imported
from mldiagnostics.profiling.imports import ImportWatch
from mldiagnostics.profiling.ports import is_free, listener
from mldiagnostics.profiling.recorder import CannotRecord

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.profiling.recorder import ProfilerServer

_NVIDIA_DRIVER = "/dev/nvidiactl"


@dataclass(slots=True)
class _OnDemand:
    """The server at `port`, or the wait for the import of a framework."""

    port: int
    run: CurrentRun | None
    server: ProfilerServer | None = None
    """Referred to here, since some servers stop when they are garbage-collected."""
    watch: ImportWatch | None = None


_lock = threading.RLock()  # a signal handler may stop a server that its thread is starting
_running: _OnDemand | None = None
_inherited: list[object] = []
"""Servers of the parent, which a forked child must not stop."""


def start_on_demand_xprof(port: int | None = None, **unknown: object) -> int | None:
    """Start the profiler server for on-demand captures of this process.

    It imports no framework and does not initialise JAX's backends: the server starts as soon as the program has
    imported its framework. The current run, if there is one, publishes the port and stops the server when it closes.
    A second call returns the same port.

    Args:
        port: The port of the process with local rank 0. Default: MLDIAG_PROFILER_PORT, else 9999.

    Returns:
        The port that is served: `port` plus the local rank. None if on-demand captures are off: problems are one
        warning in the log and never raise.

    Example:
        >>> start_on_demand_xprof()  # on local rank 1  # doctest: +SKIP
        10000
    """
    global _running  # noqa: PLW0603 - a process has one profiler server
    if unknown:
        warn_ignored("start_on_demand_xprof", start_on_demand_xprof, (), unknown)
    run = current()
    with _lock:
        if _running is not None:
            warn_once("on-demand-twice", f"start_on_demand_xprof: already started, at port {_running.port}")
            return _running.port
        on_demand = None
        try:
            on_demand = _OnDemand(
                _free_port((_configured_port() if port is None else int(port)) + _local_rank(run)), run
            )
            _running = on_demand
            if not _serve(on_demand):
                on_demand.watch = ImportWatch(lambda: _serve_once_imported(on_demand))
        except Exception as error:  # noqa: BLE001 - a framework's error must not stop the training
            _switch_off(error)
            return None
        if run is not None:
            run.on_close(stop_on_demand_xprof)
    return on_demand.port


def stop_on_demand_xprof() -> None:
    """Stop the profiler server, if it is running and its framework can stop it.

    TensorFlow's server runs until its process ends. Never raises.
    """
    global _running  # noqa: PLW0603 - as above
    with _lock:
        if _running is None:
            return
        server, watch = _running.server, _running.watch
        if server is not None and server.stop is None:
            return
        _running = None
    if server is not None and server.stop is not None:
        try:
            server.stop()
        except Exception as error:  # noqa: BLE001
            warn_once(
                "on-demand-stop", f"stop_on_demand_xprof: the profiler server failed: {type(error).__name__}: {error}"
            )
    elif watch is not None:
        watch.stop()
        warn_once("on-demand-off", "on-demand captures of this process did not start: no framework was imported")


def _serve(on_demand: _OnDemand) -> bool:
    """Start the server; false while the framework is not imported.

    Raises `CannotRecord` or the framework's error.
    """
    run = on_demand.run
    recorder = recorder_once_imported((detect() if run is None else run.framework).value)
    if recorder is None:
        return False
    on_demand.server = server = recorder.serve(_free_port(on_demand.port))
    if server.kind == "jax":
        _warn_of_command_buffers()
    if run is not None:
        report = {"port": on_demand.port, "server": server.kind, "version": server.version}
        run.publish("profiler", report)
        run.recording.append("session", ON_DEMAND, payload={"state": "listening", **report})
    return True


def _warn_of_command_buffers() -> None:
    """Warn where a capture can end the process; decision 0087."""
    uses_gpu = os.path.exists(_NVIDIA_DRIVER) and os.environ.get("JAX_PLATFORMS", "cuda") != "cpu"  # noqa: PTH110 - light
    if uses_gpu and not command_buffers.are_off(os.environ.get("XLA_FLAGS", "")):
        warn_once(
            "command-buffers",
            "XLA_FLAGS: XLA uses command buffers, and an on-demand capture of the GPU can end this process; add "
            f"{command_buffers.OFF}, or capture with tracers.device 0",
        )


def _serve_once_imported(on_demand: _OnDemand) -> bool:
    """Start the server from the thread that waits for imports; true ends the wait."""
    with _lock:
        if _running is not on_demand:
            return True
        try:
            if not _serve(on_demand):
                return False
        except Exception as error:  # noqa: BLE001 - as above
            _switch_off(error)
        return True


def _switch_off(error: Exception) -> None:
    global _running  # noqa: PLW0603 - as above
    _running = None
    reason = str(error) if isinstance(error, CannotRecord) else f"{type(error).__name__}: {error}"
    warn_once("on-demand-off", f"on-demand captures of this process are off: {reason}")


def _free_port(port: int) -> int:
    if not 1 <= port <= MAX_PORT:
        raise CannotRecord(f"port {port!r} is not between 1 and {MAX_PORT}")
    if not is_free(port):
        raise CannotRecord(
            f"port {port} is taken by {listener(port)}; set another port with MLDIAG_PROFILER_PORT, or set a "
            "different LOCAL_RANK for each process of a host"
        )
    return port


def _configured_port() -> int:
    return _number("MLDIAG_PROFILER_PORT", DEFAULT_PORT)


def _local_rank(run: CurrentRun | None) -> int:
    return _number("LOCAL_RANK", 0) if run is None else run.origin.local_rank


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    if text and not text.isdecimal():
        warn_once("bad-variable", f"{variable}={text!r} is not a number; {default} is used")
    return int(text) if text.isdecimal() else default


def _after_fork() -> None:
    """Reset in a forked child: the threads and the lock's holder do not exist."""
    global _lock, _running  # noqa: PLW0603 - as above
    _lock = threading.RLock()
    if _running is not None:
        _inherited.append(_running.server)
        _running = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
