"""The profiler server of this process: started once, on a port that is free, and told to those who capture."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from mldiagnostics.complaints import complain
from mldiagnostics.profiling.frameworks import recorder
from mldiagnostics.profiling.ports import is_free, listener
from mldiagnostics.profiling.recorder import CannotRecord
from mldiagnostics.run import current

if TYPE_CHECKING:
    from mldiagnostics.profiling.recorder import Server
    from mldiagnostics.run import MLRun

DEFAULT_PORT = 9999
MAX_PORT = 65535

_lock = threading.RLock()  # a signal's handler may end what its thread is about to start
_running: tuple[int, Server] | None = None
"""Kept here, since some servers live only as long as somebody refers to them."""


def start_on_demand_xprof(port: int | None = None) -> int | None:
    """Let others capture profiles of this process, and return the port: `port` and the local rank together.

    Without `port` it is that of MLDIAG_PROFILER_PORT, else 9999. Never raises: what is in the way is said once in the
    log, and None is returned. JAX's backends are not initialised. Where a run is current it publishes the port.
    """
    global _running  # noqa: PLW0603 - a process has one profiler server
    run = current()
    with _lock:
        if _running is not None:
            complain("on-demand-twice", f"on-demand captures are on already, at port {_running[0]}")
            return _running[0]
        try:
            chosen = (_configured() if port is None else int(port)) + _local_rank(run)
            server = _serve(chosen, "JAX" if run is None else run.framework.value)
        except CannotRecord as error:
            complain("on-demand-off", f"on-demand captures of this process are off: {error}")
            return None
        except Exception as error:  # noqa: BLE001 - whatever a framework raises must not reach the training
            complain("on-demand-off", f"on-demand captures of this process are off: {type(error).__name__}: {error}")
            return None
        _running = chosen, server
    if run is not None:
        report = {"port": chosen, "server": server.kind, "version": server.version}
        run.publish("profiler", report)
        run.recording.append("session", "on-demand", payload={"state": "listening", **report})
        run.on_close(stop_on_demand_xprof)
    return chosen


def stop_on_demand_xprof() -> None:
    """End the profiler server, if there is one and its framework lets it end."""
    global _running  # noqa: PLW0603 - as above
    with _lock:
        stop = None if _running is None else _running[1].stop
        if stop is None:
            return
        _running = None
    try:
        stop()
    except Exception as error:  # noqa: BLE001
        complain("on-demand-stop", f"the profiler server did not end cleanly: {type(error).__name__}: {error}")


def _serve(port: int, framework: str) -> Server:
    if not 1 <= port <= MAX_PORT:
        raise CannotRecord(f"{port!r} is no port: give one between 1 and {MAX_PORT}")
    if not is_free(port):
        raise CannotRecord(
            f"port {port} is taken by {listener(port)}: give another one (MLDIAG_PROFILER_PORT), "
            "and tell the processes of a host apart by LOCAL_RANK"
        )
    return recorder(framework, load=True).serve(port)


def _configured() -> int:
    return _number("MLDIAG_PROFILER_PORT", DEFAULT_PORT)


def _local_rank(run: MLRun | None) -> int:
    return _number("LOCAL_RANK", 0) if run is None else run.origin.local_rank


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    if text and not text.isdecimal():
        complain("bad-variable", f"{variable}={text!r} is no number; {default} is used")
    return int(text) if text.isdecimal() else default
