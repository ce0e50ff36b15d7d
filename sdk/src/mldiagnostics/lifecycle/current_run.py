"""The run of this process: at most one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.run.mlrun import MLRun

_current: MLRun | None = None
_last: MLRun | None = None


def current() -> MLRun | None:
    """Return the run of this process, None before its start and after its end."""
    return _current


def last() -> MLRun | None:
    """Return the current run of this process, else the last one."""
    return _last


def enter(run: MLRun) -> None:
    """Make `run` the run of this process."""
    global _current, _last  # noqa: PLW0603 - the process has one run, and this module holds it
    _current = _last = run


def leave(run: MLRun) -> None:
    """End the membership in `run`, if it is still the current one."""
    global _current  # noqa: PLW0603
    if _current is run:
        _current = None
