"""The run of this process: at most one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.configs.kinds import Framework
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.recorder import CloseSummary, RecordPipeline
    from mldiagnostics.spool.storage import RunStorage


class CurrentRun(Protocol):
    """The run as the packages below `run` use it.

    They read its identity, write its records and files, and act at its steps and its end.
    """

    metric_only_run: bool

    @property
    def origin(self) -> Origin:
        """Identity of this process in the records."""

    @property
    def storage(self) -> str:
        """Root of all runs."""

    @property
    def directory(self) -> str:
        """Directory of this run, below the root."""

    @property
    def framework(self) -> Framework:
        """The framework that the program trains with."""

    @property
    def recording(self) -> RecordPipeline:
        """Pipeline of the run's records."""

    @property
    def files(self) -> RunStorage:
        """The files of the run."""

    @property
    def last_step(self) -> int | None:
        """The newest step of the training loop, None before the first."""

    def on_step(self, callback: Callable[[int], object]) -> None:
        """Call `callback` with each step."""

    def on_close(self, callback: Callable[[], object]) -> None:
        """Call `callback` as the run ends."""

    def publish(self, section: str, value: Mapping[str, object]) -> None:
        """Write a section of the run's record."""

    def close(self) -> CloseSummary:
        """End the run."""

    def at_signal(self, name: str, *, dying: bool) -> bool:
        """Handle a signal; return whether the process may be ended by it now."""


_current: CurrentRun | None = None
_last: CurrentRun | None = None


def current() -> CurrentRun | None:
    """Return the run of this process, None before its start and after its end."""
    return _current


def last() -> CurrentRun | None:
    """Return the current run of this process, else the last one."""
    return _last


def enter(run: CurrentRun) -> None:
    """Make `run` the run of this process."""
    global _current, _last  # noqa: PLW0603 - the process has one run, and this module holds it
    _current = _last = run


def leave(run: CurrentRun) -> None:
    """End the membership in `run`, if it is still the current one."""
    global _current  # noqa: PLW0603
    if _current is run:
        _current = None
