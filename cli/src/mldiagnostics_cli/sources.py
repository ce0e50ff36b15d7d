"""Resolution of storage and run as a user writes them."""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, NotStored
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.locations import absolute_location, local_path
from mldiagnostics.runs import RunRow, list_runs
from mldiagnostics.runs.edits import run_folders
from mldiagnostics.runs.finding import find_run_with_ranks
from mldiagnostics.runs.reference import NamedRun, meant_runs
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs.run_record import RecordedRun


_SHOWN = 5
"""Number of possible runs that a message names."""
_ID_LENGTH, _ID_SHOWN = 64, 16


def find(storage: str, run: str, *, shortest_prefix: int = 1) -> RecordedRun:
    """Return the run that a user means, with its processes.

    Args:
        storage: Root of the runs: a path or URL.
        run: Id of the run or its beginning, its name, or its directory.
        shortest_prefix: Characters that the beginning of an id has at least.

    Raises:
        ConfigurationError: No run or several runs are meant.
        StoreError: The root cannot be read.
    """
    if is_directory(run):
        run = absolute_location(run) if local_path(run) is not None else run
        root, _, folder = run.rstrip("/").rpartition("/")
        return _read(root or "/", folder)
    folders = sorted(run_folders(open_store(storage)))
    if run in folders:
        return find_run_with_ranks(storage, run)
    named = [_named(row) for row in list_runs(storage, name=escape(run))]
    begun = [NamedRun(folder, frozenset(), folder) for folder in folders if folder not in {each.key for each in named}]
    found = meant_runs(run, [*named, *begun], shortest_prefix=shortest_prefix)
    if not found:
        check_root(storage)
        raise ConfigurationError(
            f"{run}: no run in {storage} has this name, or an id that starts so; "
            f"`mldiag runs list --storage {storage}` shows the runs"
        )
    if len(found) > 1:
        raise several(run, storage, [each.key for each in found], "pass the id of one")
    return find_run_with_ranks(storage, found[0].key)


def several(run: str, place: str, meant: Sequence[str], remedy: str) -> ConfigurationError:
    """Return the error for a word that means several runs."""
    shown = ", ".join(each[:_ID_SHOWN] if len(each) == _ID_LENGTH else each for each in meant[:_SHOWN])
    more = f" and {len(meant) - _SHOWN} more" if len(meant) > _SHOWN else ""
    return ConfigurationError(f"{run}: {len(meant)} runs in {place} are meant: {shown}{more}; {remedy}")


def _named(row: RunRow) -> NamedRun:
    return NamedRun(row.run_id, frozenset({row.name}), Path(row.directory).name)


def _read(root: str, folder: str) -> RecordedRun:
    """Return the run in one directory, never one whose id begins with its name."""
    if folder not in open_store(root).folders():
        raise ConfigurationError(f"{root}/{folder}: no such directory; `mldiag runs list` shows those of the runs")
    return find_run_with_ranks(root, folder)


def check_root(storage: str) -> None:
    """Raise `ConfigurationError` if a location cannot be the root of runs."""
    path = local_path(storage)
    if path is not None and not path.is_dir():
        raise ConfigurationError(
            f"{storage}: no such directory; pass the root of the runs with --storage, or set MLDIAG_STORAGE"
        )
    if _has_record(storage):
        root, _, folder = open_store(storage).url().rstrip("/").rpartition("/")
        raise ConfigurationError(
            f"{storage}: is the directory of one run; write `mldiag runs get {root}/{folder}`, or --storage {root}"
        )


def is_directory(run: str) -> bool:
    """Return whether a run is given by its directory."""
    return ("/" in run and not is_workload(run)) or (Path(run) / RUN_RECORD).is_file()


def is_workload(run: str) -> bool:
    """Return whether a run is given by its workload in a cluster, as KIND/NAME.

    >>> is_workload("jobset/trainer"), is_workload("runs/trainer"), is_workload("./job/trainer")
    (True, False, False)
    """
    kind, _, name = run.partition("/")
    if not kind or not name or "/" in name or Path(run).exists():
        return False
    from mldiagnostics_api.workloads.kinds import workload_named  # noqa: PLC0415 - only for runs with a slash

    return workload_named(kind) is not None


def is_run_directory(text: str) -> bool:
    """Return whether a word is the directory of a run on this machine, or a URL."""
    return "://" in text or (Path(text) / RUN_RECORD).is_file()


def _has_record(storage: str) -> bool:
    try:
        open_store(storage).open(RUN_RECORD).close()
    except NotStored:
        return False
    return True
