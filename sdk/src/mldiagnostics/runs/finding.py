"""One run below a root, with its processes and attempts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.runs.attempt_row import rows_of_attempts
from mldiagnostics.runs.edits import run_folders
from mldiagnostics.runs.record_queries import last_records, process_rows
from mldiagnostics.runs.row import RunRow, directory_of
from mldiagnostics.runs.run_record import RecordedRun, read_run, with_sessions
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from mldiagnostics.runs.attempt_row import AttemptRow
    from mldiagnostics.runs.rank_row import RankRow


_SILENT = frozenset({"Lost", "Terminated"})
"""Reasons of attempts whose end is their last record."""


def find_run(storage: str, run: str, *, now: float | None = None) -> RunRow:
    """Return one run, with the hosts and the failures of all its ranks.

    It costs as much as `list_runs` for this run and `ranks` together.

    Args:
        storage: Root of the runs: a path or URL.
        run: Id of the run, or the beginning of it.
        now: As of when, in Unix seconds; by default now.

    Raises:
        ConfigurationError: No run or several runs have an id that starts so.
        MissingExtraError: the bucket needs the extra `gcs`, `s3` or `azure`.
        StoreError: The root cannot be read.

    Example:
        row = find_run("mldiagnostics", "4f6c")
    """
    return find_run_with_ranks(storage, run, now=now).row


def find_run_with_ranks(storage: str, run: str, *, now: float | None = None) -> RecordedRun:
    """Return one run as `find_run` does, and its rows of `ranks`.

    The records are read once for both.

    Example:
        row, processes = find_run_with_ranks("mldiagnostics", "4f6c")
    """
    store, moment = open_store(storage), time.time() if now is None else now
    recorded = read_run(store, run, moment, with_ranks=True) if run else None
    if recorded is None:
        matching = [folder for folder in run_folders(store) if folder.startswith(run)]
        if len(matching) != 1 and run not in matching:
            raise ConfigurationError(
                f"{run!r}: {len(matching)} runs in {store.url()} have an id that starts so; pass more of it"
                if matching
                else f"{run!r}: 0 runs in {store.url()} have an id that starts so; list_runs shows the ids"
            )
        recorded = read_run(store, run if run in matching else matching[0], moment, with_ranks=True)
    if recorded is None:
        raise ConfigurationError(f"{run!r}: not a run in {store.url()}: its run.json is missing or cannot be read")
    return recorded._replace(row=with_sessions(store, recorded.row))


def ranks(run: RunRow | str, *, now: float | None = None) -> list[RankRow]:
    """Return the processes of a run, for each rank the last one.

    The cost does not grow with the length of the run: of each process the first 64 KiB are read and the end of its last
    file, 256 KiB, or up to 8 MiB until that shows a sign of life. In a store these two objects are read whole.

    Args:
        run: A row, or the directory of a run: a path or URL.
        now: As of when, in Unix seconds; by default now.

    Returns:
        The rows, by rank; none if there are no records.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read.
        StoreError: The files cannot be read.

    Example:
        [rank for rank in ranks(run) if rank.phase == "Failed"]
    """
    moment = time.time() if now is None else now
    root, _, folder = directory_of(run).rstrip("/").rpartition("/")
    if folder and root and not root.endswith(("/", ":")):
        recorded = read_run(open_store(root), folder, moment, with_ranks=True)
        if recorded is not None:
            return recorded.ranks
    return process_rows(directory_of(run), now=moment)


def attempt_rows(run: RunRow) -> list[AttemptRow]:
    """Return the attempts of a run (at most the last 101), the oldest first.

    The ends of attempts that were killed are those of their last records, which are read.

    Raises:
        StoreError: The files cannot be read.
    """
    lost = {row.incarnation for row in rows_of_attempts(run, {})[:-1] if row.reason in _SILENT}
    return rows_of_attempts(run, last_records(run.directory, lost) if lost else {})
