"""Resolution of storage and run as a user writes them."""

from __future__ import annotations

from pathlib import Path

from mldiagnostics.errors import ConfigurationError, NotStored
from mldiagnostics.goodput.log import open_log
from mldiagnostics.layout import REPORTED_DIR, RUN_RECORD
from mldiagnostics.locations import local_path
from mldiagnostics.runs import RunRow, find_run, list_runs
from mldiagnostics.store import open_store

__all__ = ["check_root", "find", "goodput_log", "is_directory", "is_on_volume"]

_VOLUME = "volume://"
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
    if is_directory(run):
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


def is_directory(run: str) -> bool:
    """Return whether a run is given by its directory."""
    return "/" in run or (Path(run) / RUN_RECORD).is_file()


def is_on_volume(location: str) -> bool:
    """Return whether a location is one of the operator's volume, as a cluster shows it."""
    return location.startswith(_VOLUME)


def goodput_log(run: RunRow) -> str:
    """Return the goodput log of a run: its own records, else those that it has reported to the control plane."""
    reported = f"{run.directory}/{REPORTED_DIR}"
    return run.directory if open_log(run.directory).exists() or not open_log(reported).exists() else reported


def _has_record(storage: str) -> bool:
    try:
        open_store(storage).open(RUN_RECORD).close()
    except NotStored:
        return False
    return True
