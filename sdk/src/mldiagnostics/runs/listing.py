"""Runs below a root, as rows."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import RUN_RECORD, edits_key
from mldiagnostics.runs.edits import edits_keys, run_folders
from mldiagnostics.runs.run_filter import RunFilter
from mldiagnostics.runs.run_record import read_run, run_at, with_sessions
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics.lifecycle.outcome import Phase
    from mldiagnostics.runs.row import RunRow
    from mldiagnostics.runs.run_record import RecordedRun


PARALLEL_READS = 32
_FAST_READ_S = 0.001
"""Mean time of a read from a local disk, at most."""
_SLOW_READS = 4
"""Time of so many reads may be lost before the threads begin."""

T = TypeVar("T")
R = TypeVar("R")


def list_runs(
    storage: str,
    *,
    name: str | None = None,
    run_group: str | None = None,
    tag: str | None = None,
    namespace: str | None = None,
    phase: Phase | None = None,
    since: float | None = None,
    limit: int | None = None,
    now: float | None = None,
    unreadable: Callable[[str], None] = lambda _: None,
) -> list[RunRow]:
    """Return the runs below a root, the newest first.

    Of each run its run.json is read, and of those that match the names of the profile sessions are listed: two requests
    to a store, 32 runs at a time, however long the runs are; and of each that people edited, its edits. The rows are
    those of `find_run`: of runs with several ranks, and of those that have not written their end, the ends of the
    records are read as by `ranks`. A folder without a run.json is not a run; a run.json that cannot be read is left
    out with one warning.

    Args:
        storage: Root of the runs: a path or URL.
        name: Only runs of this name; `*` and `?` stand for any characters.
        run_group: Only runs of this group.
        tag: Only runs with this tag.
        namespace: Only runs in this namespace.
        phase: Only runs in this phase, as of `now`.
        since: Only runs that started, ended or showed a sign of life after this moment, in Unix seconds.
        limit: At most so many.
        now: As of when, in Unix seconds; by default now.
        unreadable: Called, in any thread, with the name of each directory whose run.json cannot be read.

    Raises:
        ConfigurationError: The root is not a path or URL that can be read.
        MissingExtraError: the bucket needs the extra `gcs`, `s3` or `azure`.
        StoreError: The root cannot be read.

    Example:
        for row in list_runs("gs://bucket/runs", phase="Active"):
            print(row.name, row.step, row.step_time_s)
    """
    store, moment = open_store(storage), time.time() if now is None else now
    wanted = RunFilter(
        name=name, run_group=run_group, tag=tag, namespace=namespace, phase=phase, since=since, limit=limit
    )
    folders = run_folders(store)
    edited = edits_keys(store)

    def read_one(folder: str) -> RecordedRun | None:
        return read_run(store, folder, moment, is_edited=edits_key(folder) in edited, unreadable=unreadable)

    read = _map_all(read_one, folders)
    rows = wanted.newest(run.row for run in read if run is not None)
    return _map_all(lambda row: with_sessions(store, row), rows)


def _map_all(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return the results of all items, with threads where one item is slow.

    On a local disk threads take three times as long as none: they compete for the interpreter. A bucket, and a
    network's file system, need them.
    """
    started = time.monotonic()
    results: list[R] = []
    for item in items:
        if time.monotonic() - started > _FAST_READ_S * (len(results) + _SLOW_READS):
            break
        results.append(work(item))
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="mldiagnostics-runs") as readers:
        return [*results, *readers.map(work, items[len(results) :])]


def configs(run: RunRow | str) -> dict[str, Any]:
    """Return the configurations of a run.

    Args:
        run: A row, whose configurations are those of the moment when it was read, or the directory of a run.

    Returns:
        The sections `software`, `hardware` and `user`.

    Raises:
        ConfigurationError: The directory has no run.json.
    """
    row = run_at(run) if isinstance(run, str) else run
    if row is None:
        raise ConfigurationError(f"{run}: has no {RUN_RECORD}; pass the directory of a run")
    return dict(row.configs)


def line_of(row: RunRow, *, with_id: bool = True) -> str:
    """Return the run as one line of a table."""
    start = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created)) if row.created else "?"
    phase = f"{row.phase} ({row.reason})" if row.reason else row.phase
    run_id = f"{row.run_id[:16]}  " if with_id else ""
    return f"{run_id}{start}  {phase:24}  step {row.step if row.step is not None else '-'}  {row.name}"
