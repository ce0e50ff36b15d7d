"""Resolution of storage and run as a user writes them."""

from __future__ import annotations

from pathlib import Path

from mldiagnostics.errors import ConfigurationError, NotStored
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.locations import local_path
from mldiagnostics.runs import RunRow, find_run, list_runs
from mldiagnostics.store import open_store

__all__ = ["check_root", "find"]

_SHOWN = 5
"""So many of the possible runs are named in a message."""


def find(storage: str, run: str) -> RunRow:
    """Return the run that a user means.

    Args:
        storage: Root of the runs: a path or URL.
        run: Id of the run or its beginning, its name, or its directory.

    Raises:
        ConfigurationError: No run or several runs are meant.
        StoreError: The root cannot be read.
    """
    if _is_directory(run):
        root, _, folder = run.rstrip("/").rpartition("/")
        return find_run(root or ("/" if run.startswith("/") else "."), folder)
    folders = sorted(open_store(storage).folders())
    ids = [run] if run in folders else [folder for folder in folders if run and folder.startswith(run)]
    if not ids:
        ids = [Path(row.directory).name for row in list_runs(storage) if row.name == run]
    if not ids:
        check_root(storage)
        raise ConfigurationError(
            f"{run}: no run in {storage} has this name, or an id that starts so; "
            f"`mldiag runs list --storage {storage}` shows the runs"
        )
    if len(ids) > 1:
        shown = ", ".join(each[:16] for each in ids[:_SHOWN])
        more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        raise ConfigurationError(f"{run}: {len(ids)} runs in {storage} are meant: {shown}{more}; give the id of one")
    return find_run(storage, ids[0])


def check_root(storage: str) -> None:
    """Raise `ConfigurationError` if a location cannot be the root of runs."""
    path = local_path(storage)
    if path is not None and not path.is_dir():
        raise ConfigurationError(
            f"{storage}: no such directory; give the root of the runs with --storage, or set MLDIAG_STORAGE"
        )
    if _has_record(storage):
        root, _, folder = open_store(storage).url().rstrip("/").rpartition("/")
        raise ConfigurationError(
            f"{storage}: is the directory of one run; write `mldiag runs get {root}/{folder}`, or --storage {root}"
        )


def _is_directory(run: str) -> bool:
    return "/" in run or (Path(run) / RUN_RECORD).is_file()


def _has_record(storage: str) -> bool:
    try:
        open_store(storage).open(RUN_RECORD).close()
    except NotStored:
        return False
    return True
