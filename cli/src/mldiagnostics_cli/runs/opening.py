"""The source of runs that a user means."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import DEFAULT_STORAGE, is_on_volume

from mldiagnostics_cli.runs.file_runs import FileRuns
from mldiagnostics_cli.sources import is_directory, is_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.runs.source import RunSource


@dataclass(frozen=True, slots=True)
class _ChosenPlace:
    storage: str | None
    is_implicit: bool


def _choose(choice: SourceChoice, runs: Sequence[str]) -> _ChosenPlace:
    """Return the root of the files, or None for the cluster."""
    if choice.cluster.are_given:
        return _ChosenPlace(None, is_implicit=False)
    if any(is_on_volume(run) or is_workload(run) for run in runs):
        return _ChosenPlace(None, is_implicit=True)
    if choice.storage is not None:
        return _ChosenPlace(choice.storage, is_implicit=False)
    if Path(DEFAULT_STORAGE).is_dir() or (runs and all(map(is_directory, runs))):
        return _ChosenPlace(DEFAULT_STORAGE, is_implicit=True)
    return _ChosenPlace(None, is_implicit=True)


@contextmanager
def open_source(choice: SourceChoice, runs: Sequence[str] = ()) -> Iterator[RunSource]:
    """Open the source of runs that a user means.

    Options of the cluster come first, then --storage and MLDIAG_STORAGE, then ./mldiagnostics if it exists, then the
    cluster of the current context. A location on the operator's volume and a workload, KIND/NAME, mean the cluster.

    Args:
        choice: Options of the command.
        runs: Runs of the command line; if all are directories, their files are read.

    Raises:
        ConfigurationError: There is neither a directory nor a cluster.
    """
    chosen = _choose(choice, runs)
    if chosen.storage is not None:
        yield FileRuns(chosen.storage)
        return
    from mldiagnostics_cli.runs.cluster_runs import open_cluster_runs  # noqa: PLC0415 - only where it is needed

    with ExitStack() as stack:
        try:
            opened = stack.enter_context(open_cluster_runs(choice.cluster))
        except ConfigurationError as error:
            if not chosen.is_implicit:
                raise
            raise ConfigurationError(
                f"{DEFAULT_STORAGE}: no such directory, and no cluster ({error}); pass the root of the runs with "
                "--storage, or a cluster with --context"
            ) from error
        yield opened
