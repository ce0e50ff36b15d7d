"""Runs below a root, as rows: read from their run.json, without their records."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError, NotStored, StoreError
from mldiagnostics.layout import PROFILE_DIR, RUN_RECORD
from mldiagnostics.runs.record_queries import ranks
from mldiagnostics.runs.row import RunRow, folded, run_row
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics.lifecycle.outcome import Phase
    from mldiagnostics.runs.rank_row import RankRow
    from mldiagnostics.store import Store

__all__ = ["configs", "find_run", "find_run_with_ranks", "line_of", "list_runs", "run_at"]

PARALLEL_READS = 32
_FAST_READ_S = 0.001
"""Mean time of a read from a local disk, at most."""
_SLOW_READS = 4
"""Time of so many reads may be lost before the threads begin."""
_MAX_RECORD_BYTES = 4 * 2**20
"""A larger run.json is not read: 32 are in memory at a time."""

T = TypeVar("T")
R = TypeVar("R")


def list_runs(
    storage: str,
    *,
    name: str | None = None,
    run_group: str | None = None,
    namespace: str | None = None,
    phase: Phase | None = None,
    since: float | None = None,
    limit: int | None = None,
    now: float | None = None,
    unreadable: Callable[[str], None] = lambda _: None,
) -> list[RunRow]:
    """Return the runs below a root, the newest first.

    Of each run its run.json is read, and of those that match the names of the profile sessions are listed: two requests
    to a store, 32 runs at a time, however long the runs are. So `hosts` is known only for runs of one rank, and the
    phase is that of the process that leads; `find_run` looks at all ranks. A folder without a run.json is not a run; a
    run.json that cannot be read is left out with one warning.

    Args:
        storage: Root of the runs: a path or URL.
        name: Only runs of this name; `*` and `?` stand for any characters.
        run_group: Only runs of this group.
        namespace: Only runs in this namespace.
        phase: Only runs in this phase, as of `now`.
        since: Only runs that started, ended or showed a sign of life after this moment, in Unix seconds.
        limit: At most so many.
        now: As of when, in Unix seconds; by default now.
        unreadable: Called, in any thread, with the name of each directory whose run.json cannot be read.

    Raises:
        ConfigurationError: The root is not a path or URL that can be read.
        MissingExtraError: `gs://` needs the extra `gcs`.
        StoreError: The root cannot be read.

    Example:
        for row in list_runs("gs://bucket/runs", phase="Active"):
            print(row.name, row.step, row.step_time_s)
    """
    store, moment = open_store(storage), time.time() if now is None else now
    exact = {"run_group": run_group, "namespace": namespace, "phase": phase}

    def matches(row: RunRow) -> bool:
        if any(value is not None and getattr(row, field) != value for field, value in exact.items()):
            return False
        if name is not None and not fnmatchcase(row.name, name):
            return False
        return since is None or max(row.created or 0, row.started or 0, row.heartbeat or 0, row.ended or 0) > since

    read = _map_all(lambda folder: _row(store, folder, moment, unreadable), list(store.folders()))
    rows = sorted(
        (row for row in read if row is not None and matches(row)),
        key=lambda row: (-(row.created or 0.0), row.run_id),
    )[:limit]
    return _map_all(lambda row: _with_sessions(store, row), rows)


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


def find_run(storage: str, run: str, *, now: float | None = None) -> RunRow:
    """Return one run, with the hosts and the failures of all its ranks.

    It costs as much as `list_runs` for this run and `ranks` together.

    Args:
        storage: Root of the runs: a path or URL.
        run: Id of the run, or the beginning of it.
        now: As of when, in Unix seconds; by default now.

    Raises:
        ConfigurationError: No run or several runs have an id that starts so.
        MissingExtraError: `gs://` needs the extra `gcs`.
        StoreError: The root cannot be read.

    Example:
        row = find_run("mldiagnostics", "4f6c")
    """
    return find_run_with_ranks(storage, run, now=now)[0]


def find_run_with_ranks(storage: str, run: str, *, now: float | None = None) -> tuple[RunRow, list[RankRow]]:
    """Return one run as `find_run` does, and its rows of `ranks`.

    The records are read once for both.

    Example:
        row, processes = find_run_with_ranks("mldiagnostics", "4f6c")
    """
    store, moment = open_store(storage), time.time() if now is None else now
    row = _row(store, run, moment) if run else None
    if row is None:
        matching = [folder for folder in store.folders() if folder.startswith(run)]
        if len(matching) != 1:
            raise ConfigurationError(
                f"{run!r}: {len(matching)} runs in {store.url()} have an id that starts so; give more of it"
                if matching
                else f"{run!r}: 0 runs in {store.url()} have an id that starts so; list_runs shows the ids"
            )
        row = _row(store, matching[0], moment)
    if row is None:
        raise ConfigurationError(f"{run!r}: not a run in {store.url()}: its run.json is missing or cannot be read")
    processes = ranks(row, now=moment)
    attempt = max((rank.attempt for rank in processes), default=None)
    hosts = {rank.host for rank in processes if rank.host and rank.attempt == attempt}
    row = replace(folded(row, processes), hosts=len(hosts) or row.hosts)
    return _with_sessions(store, row), processes


def run_at(directory: str, *, now: float | None = None) -> RunRow | None:
    """Return the run in a directory, as `list_runs` would; None without a run.json.

    Args:
        directory: A path or URL.
        now: As of when, in Unix seconds; by default now.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read.
    """
    root, _, folder = directory.rstrip("/").rpartition("/")
    if not folder or root.endswith(("/", ":")):  # a root, or a bucket
        return None
    store = open_store(root or "/")
    row = _row(store, folder, time.time() if now is None else now)
    return None if row is None else _with_sessions(store, row)


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
        raise ConfigurationError(f"{run}: has no {RUN_RECORD}; give the directory of a run")
    return dict(row.configs)


def line_of(row: RunRow, *, with_id: bool = True) -> str:
    """Return the run as one line of a table."""
    start = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created)) if row.created else "?"
    phase = f"{row.phase} ({row.reason})" if row.reason else row.phase
    run_id = f"{row.run_id[:16]}  " if with_id else ""
    return f"{run_id}{start}  {phase:24}  step {row.step if row.step is not None else '-'}  {row.name}"


def _row(store: Store, folder: str, now: float, unreadable: Callable[[str], None] = lambda _: None) -> RunRow | None:
    try:
        with store.open(f"{folder}/{RUN_RECORD}") as file:
            document = _object(file.read(_MAX_RECORD_BYTES + 1))
    except NotStored:
        return None
    except (ValueError, RecursionError, MLDiagnosticsError) as error:
        warn_once(
            "unreadable-run", f"{store.url()}/{folder}: its run.json cannot be read, the run is left out: {error}"
        )
        unreadable(folder)
        return None
    return run_row({"runId": folder, **document}, directory=store.url(folder), storage=store.url(), now=now)


def _object(content: bytes) -> Mapping[str, Any]:
    if len(content) > _MAX_RECORD_BYTES:
        raise ValueError(f"it has more than {_MAX_RECORD_BYTES >> 20} MiB")
    document = json.loads(content)
    if not isinstance(document, Mapping):
        raise ValueError("it is not an object")  # noqa: TRY004 - what json.loads raises
    return document


def _with_sessions(store: Store, row: RunRow) -> RunRow:
    folder = row.directory.removeprefix(store.url()).strip("/")
    try:
        return replace(row, sessions=tuple(sorted(store.folders(f"{folder}/{PROFILE_DIR}"))))
    except StoreError:
        return row
