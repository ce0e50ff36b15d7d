"""Access to the current run by the names of `core.global_manager` in Google's SDK."""

from __future__ import annotations

from mldiagnostics.compat.logging_client import LoggingClient
from mldiagnostics.lifecycle.current_run import enter as initialize_with_mlrun
from mldiagnostics.lifecycle.current_run import enter as register_run
from mldiagnostics.lifecycle.current_run import last as get_last_updated_run
from mldiagnostics.run import current as get_current_run

__all__ = [
    "GlobalRunManager",
    "get_current_run",
    "get_current_run_id",
    "get_global_run_manager",
    "get_last_updated_run",
    "get_logging_client",
    "initialize_with_mlrun",
    "register_run",
]


def get_current_run_id() -> str | None:
    """Return the id of the current run, None if there is none."""
    run = get_current_run()
    return run.run_id if run is not None else None


def get_logging_client() -> LoggingClient:
    """Return a client that records metrics of the current run."""
    return LoggingClient()


class GlobalRunManager:
    """The functions of this module as methods."""

    get_current_run = staticmethod(get_current_run)
    get_current_run_id = staticmethod(get_current_run_id)
    get_last_updated_run = staticmethod(get_last_updated_run)
    get_logging_client = staticmethod(get_logging_client)
    initialize_with_mlrun = staticmethod(initialize_with_mlrun)
    register_run = staticmethod(register_run)


_manager = GlobalRunManager()


def get_global_run_manager() -> GlobalRunManager:
    """Return the manager of this process, always the same object."""
    return _manager
