"""Runs read back from where they were written: a local directory or a bucket, no cluster needed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError, NotStored, StoreNotFound
from mldiagnostics.layout import RECORDS_DIR, RUN_RECORD, is_record_segment
from mldiagnostics.pipeline.records import decode
from mldiagnostics.runs.row import RankRow, RunRow, folded, rank_rows, run_row
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mldiagnostics.pipeline.records import Kind, Record
    from mldiagnostics.store import Store

__all__ = [
    "RankRow",
    "RunRow",
    "find_run",
    "folded",
    "list_runs",
    "rank_rows",
    "ranks_of",
    "read_records",
    "run_at",
    "run_row",
]

PARALLEL_READS = 32


def list_runs(storage: str, *, now: float | None = None) -> list[RunRow]:
    """Return the runs below a root, the newest first, as of `now` (Unix seconds).

    Folders without a run.json are no runs; one that cannot be read is complained about and left out. Raises
    `ConfigurationError` and `StoreError` if the root cannot be read.
    """
    store, moment = open_store(storage), time.time() if now is None else now
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="mldiagnostics-runs") as readers:
        rows = readers.map(lambda folder: _row(store, folder, moment), store.folders())
        return sorted((row for row in rows if row), key=lambda row: (-(row.created or 0.0), row.run_id))


def find_run(storage: str, run: str, *, now: float | None = None) -> RunRow:
    """Return the run whose id is `run` or, of all below the root, begins with it.

    Its phase is folded with those of its processes. Raises `ConfigurationError` if there is none, or more than one.
    """
    store, moment = open_store(storage), time.time() if now is None else now
    row = _row(store, run, moment)
    if row is None:
        found = [folder for folder in store.folders() if folder.startswith(run)]
        if len(found) != 1:
            raise ConfigurationError(f"{len(found)} runs in {store.url()} have an id that begins with {run!r}")
        row = _row(store, found[0], moment)
    if row is None:
        raise ConfigurationError(f"{store.url()} has no run {run!r}")
    return folded(row, ranks_of(storage, row.run_id, now=moment))


def run_at(directory: str, *, now: float | None = None) -> RunRow | None:
    """Return the run whose files are in a directory, a path or URL, as of `now`; None if it has no run.json.

    Raises `ConfigurationError` if the directory is not a place that can be read.
    """
    root, _, folder = directory.rstrip("/").rpartition("/")
    if not folder or root.endswith(("/", ":")):  # a root, or a bucket
        return None
    return _row(open_store(root or "/"), folder, time.time() if now is None else now)


def read_records(storage: str, run_id: str, *, kinds: Collection[Kind] | None = None) -> Iterator[Record]:
    """Yield the records of a run, in order for each process, of all kinds or of some.

    A last line that is still being written is left for the next reading, one that is broken is passed over.
    """
    for _, record in _records(open_store(storage), run_id, kinds):
        yield record


def ranks_of(storage: str, run_id: str, *, now: float | None = None) -> list[RankRow]:
    """Return the processes of a run in its last attempt, by rank, as of `now`."""
    records = _records(open_store(storage), run_id, {"phase", "heartbeat"})
    return rank_rows(records, now=time.time() if now is None else now)


def _row(store: Store, folder: str, now: float) -> RunRow | None:
    try:
        with store.open(f"{folder}/{RUN_RECORD}") as file:
            document = json.load(file)
    except NotStored:
        return None
    except (ValueError, MLDiagnosticsError) as error:
        warn_once("unreadable-run", f"a run is left out, its run.json cannot be read: {store.url(folder)}: {error}")
        return None
    if not isinstance(document, Mapping):
        return None
    return run_row({"runId": folder, **document}, directory=store.url(folder), now=now)


def _records(store: Store, run_id: str, kinds: Collection[Kind] | None) -> Iterator[tuple[str, Record]]:
    """Yield records with the incarnation of the process that made them."""
    try:
        keys = [entry.key for entry in store.list(f"{run_id}/{RECORDS_DIR}")]
    except StoreNotFound:
        return
    for key in keys:
        if not is_record_segment(key.removeprefix(f"{run_id}/")):
            continue
        incarnation = key.rpartition("/")[2].split("-")[2]
        with store.open(key) as file:
            for line in file:
                if line.endswith(b"\n") and (record := _record(line)) and (kinds is None or record.kind in kinds):
                    yield incarnation, record


def _record(line: bytes) -> Record | None:
    try:
        return decode(line)
    except ValueError:
        return None


def line_of(row: RunRow, *, with_id: bool = True) -> str:
    """Return the run as one line of a table."""
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.created)) if row.created else "?"
    phase = f"{row.phase} ({row.reason})" if row.reason else row.phase
    run_id = f"{row.run_id[:16]}  " if with_id else ""
    return f"{run_id}{began}  {phase:24}  step {row.step if row.step is not None else '-'}  {row.name}"
