"""Which run this process is in: at most one, and none before the program begins one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.run.mlrun import MLRun

_current: MLRun | None = None
_last: MLRun | None = None


def current() -> MLRun | None:
    """Return the run that this process is in, None before it begins and after it is closed."""
    return _current


def last() -> MLRun | None:
    """Return the run that this process is or was in last."""
    return _last


def enter(run: MLRun) -> None:
    """Make `run` the one that this process is in."""
    global _current, _last  # noqa: PLW0603 - the process has one run, and this module holds it
    _current = _last = run


def leave(run: MLRun) -> None:
    """Be in no run any more, if it is still this one."""
    global _current  # noqa: PLW0603
    if _current is run:
        _current = None
