"""The interface of places that have runs, for a server that follows them.

A command reads once, and waits: `RunSource` of the command line is its interface, with the same rows and functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.runs import AttemptRow, FindingRow, RankRow, RunRow, SessionRow
    from mldiagnostics_api.schedules.of_run import ScheduleOfRun

    from mldiagnostics_view.captures.captures import Captures


class RunUnknown(Exception):
    """A source has no run with a key; the message, if there is one, has the reason."""


@dataclass(slots=True, eq=False)
class ListedRun:
    """One version of a run in the list of its source."""

    key: str
    """Names the run in URLs."""
    row: RunRow
    text: bytes | None = None
    """Its JSON in the list of runs, once a page has read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """All about a run but its curves and its goodput."""

    row: RunRow
    attempts: Sequence[AttemptRow]
    hosts: Sequence[RankRow]
    sessions: Sequence[SessionRow]
    findings: Sequence[FindingRow]
    """Of the newest session with a diagnosis."""


def namespace_in(key: str) -> str:
    """Return the namespace in the key of a run; empty if it has none.

    >>> namespace_in("ml:trainer"), namespace_in("trainer")
    ('ml', '')
    """
    return key.partition(":")[0] if ":" in key else ""


class ListedSource(Protocol):
    """Reads runs.

    Methods raise `StoreError`, `ConfigurationError` or `ClusterError`.
    """

    @property
    def place(self) -> str:
        """Return the place of the runs, for people."""

    @property
    def problem(self) -> str:
        """Return the reason why the list may be old; empty if it is not."""

    @property
    def captures(self) -> Captures:
        """Return the captures of its runs."""

    def namespace(self, key: str) -> str:
        """Return the namespace of the run that a key names.

        Empty if runs have none here, or the key is invalid.
        """

    async def rows(self) -> Sequence[ListedRun]:
        """Return the runs, the newest first; at most `MAX_RUNS`."""

    async def detail(self, key: str) -> RunDetail:
        """Return one run. Raises `RunUnknown`."""

    async def schedules(self, key: str) -> Sequence[ScheduleOfRun]:
        """Return the schedules that apply to a run, in a cluster.

        Raises `RunUnknown`.
        """

    async def directory(self, key: str, *, may_copy: bool = True) -> str:
        """Return the readable directory of a run, a path or URL; empty without one.

        Without `may_copy`, a directory whose files must be copied first is empty too. Raises `RunUnknown`.
        """

    async def configs(self, key: str) -> Mapping[str, Any]:
        """Return the configurations of a run. Raises `RunUnknown`."""

    async def account(self, key: str) -> Mapping[str, Any] | None:
        """Return the account of a run's time that needs none of its files.

        None without one. Its names are those of the goodput report. Raises `RunUnknown`.
        """

    async def aclose(self) -> None:
        """Stop reading."""
