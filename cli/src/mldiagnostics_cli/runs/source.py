"""The interface of places that have runs: files below a root, or a cluster.

The view has a second one, `ListedSource`: a server follows its places and serves requests meanwhile, a command reads
once. Both read with the functions of `mldiagnostics.runs`, `mldiagnostics_api.runs` and
`mldiagnostics_kube.installation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mldiagnostics.runs import AttemptRow, MetricSeries, RankRow, RunRow, SessionRow
    from mldiagnostics.runs.run_filter import RunFilter

    from mldiagnostics_cli.runs.run_edit import RunEdit


@dataclass(frozen=True, slots=True)
class DeletableRun:
    """A run with its deletion.

    Args:
        row: The run.
        delete: Deletes it; raises `MLDiagnosticsError`.
        files: Number of its files; None for an MLRun, whose deletion keeps them.
        bytes: Size of the files.
    """

    row: RunRow
    delete: Callable[[], None]
    files: int | None = None
    bytes: int | None = None


class RunSource(Protocol):
    """Reads runs.

    All methods raise `ConfigurationError`, `StoreError` or `ClusterFailure`.
    """

    @property
    def place(self) -> str:
        """Return where the runs are, for messages."""

    def rows(self, wanted: RunFilter) -> list[RunRow]:
        """Return the runs of a filter, the newest first."""

    def find(self, run: str, *, shortest_prefix: int = 1) -> RunRow:
        """Return the run that a user means: by its id, the beginning of it, or its name.

        The beginning of an id has at least `shortest_prefix` characters.
        """

    def again(self, row: RunRow) -> RunRow:
        """Return the run of a row as it is now."""

    def attempts(self, row: RunRow) -> list[AttemptRow]:
        """Return the attempts of a run, the oldest first."""

    def sessions(self, row: RunRow, *, with_files: bool = False) -> list[SessionRow]:
        """Return the sessions of a run.

        Without `with_files`, their files may be unknown; with it, those that this machine can list are known.
        """

    def fetched(self, row: RunRow) -> AbstractContextManager[RunRow]:
        """Return the run while its records can be read from this machine."""

    def fetched_session(self, session: SessionRow) -> AbstractContextManager[SessionRow]:
        """Return the session while its traces can be read from this machine."""

    def hosts(self, row: RunRow) -> list[RankRow]:
        """Return the ranks of a run with their hosts."""

    def curves(self, row: RunRow, metrics: Sequence[str] | None, *, rank: int) -> list[MetricSeries]:
        """Return curves, all without names.

        Empty for a row whose files must be copied first; read that of `fetched`.
        """

    def last_metrics(self, row: RunRow) -> Mapping[str, float] | None:
        """Return the newest values that are known without the files of a run.

        None if only the files have values.
        """

    def accounted(self, rows: Sequence[RunRow]) -> list[RunRow]:
        """Return runs with their goodput, where it can be read without much work.

        A run whose files cannot be read stays as it is.
        """

    def edited(self, row: RunRow, edit: RunEdit) -> RunRow:
        """Change the words of a run; return it as it is then."""

    def deletable(self, row: RunRow) -> DeletableRun:
        """Return a run with its deletion."""
