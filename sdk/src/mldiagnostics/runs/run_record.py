"""A run out of its run.json and the ends of its records."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import MLDiagnosticsError, NotStored, StoreError
from mldiagnostics.exit_status import outcome_left
from mldiagnostics.layout import PROFILE_DIR, RUN_RECORD
from mldiagnostics.lifecycle.description import RunDescription
from mldiagnostics.lifecycle.history import MAX_ATTEMPTS
from mldiagnostics.runs.edits import read_edits
from mldiagnostics.runs.fold import folded, is_final
from mldiagnostics.runs.record_queries import process_rows
from mldiagnostics.runs.row import run_row
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.runs.rank_row import RankRow
    from mldiagnostics.runs.row import RunRow
    from mldiagnostics.store import Store


_MAX_RECORD_BYTES = 4 * 2**20
"""A larger run.json is not read: 32 are in memory at a time."""


class RecordedRun(NamedTuple):
    """A run with its processes as of one moment."""

    row: RunRow
    ranks: list[RankRow]
    """Empty if they were not read, as run.json has all facts of the run."""


def read_run(
    store: Store,
    folder: str,
    now: float,
    *,
    with_ranks: bool = False,
    is_edited: bool = True,
    unreadable: Callable[[str], None] = lambda _: None,
) -> RecordedRun | None:
    """Return the run in a folder of a root; None without a run.json that can be read.

    The records are read `with_ranks`, and for all runs whose run.json does not have all facts: those of several
    processes, and those whose process runs or was killed.

    Args:
        store: Store of the root.
        folder: Directory of the run below it.
        now: As of when, in Unix seconds.
        with_ranks: Whether to read the processes in any case.
        is_edited: Whether people may have changed its name, tags or notes; False saves a request.
        unreadable: Called with the folder if its run.json cannot be read.
    """
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
    directory = store.url(folder)
    document = _with_statuses_left({"runId": folder, **document}, directory)
    edits = read_edits(store, folder) if is_edited else RunDescription()
    row = run_row(document, directory=directory, storage=store.url(), now=now, edits=edits)
    if is_final(row) and not with_ranks:
        return RecordedRun(row, [])
    try:
        interval_s = FieldReader(row.document).part("heartbeat").number("intervalSeconds")
        whole, ranks = folded(row, process_rows(row.directory, now=now, interval_s=interval_s))
        return RecordedRun(row if is_final(row) else whole, ranks)  # as in a list, which does not read the records
    except StoreError as error:
        if with_ranks:
            raise
        warn_once("unreadable-records", f"{row.directory}: its records cannot be read, run.json is shown: {error}")
        return RecordedRun(row, [])


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
    run = read_run(store, folder, time.time() if now is None else now)
    return None if run is None else with_sessions(store, run.row)


def with_sessions(store: Store, row: RunRow) -> RunRow:
    """Return the row with the names of its profile sessions."""
    folder = row.directory.removeprefix(store.url()).strip("/")
    try:
        return replace(row, sessions=tuple(sorted(store.folders(f"{folder}/{PROFILE_DIR}"))))
    except StoreError:
        return row


def _with_statuses_left(document: Mapping[str, Any], directory: str) -> Mapping[str, Any]:
    """Return a run.json with the exit statuses of its attempts."""
    attempts = document.get("attempts")
    earlier = attempts[-MAX_ATTEMPTS:] if isinstance(attempts, list) else []
    attempts = [_with_status_left(each, directory) for each in earlier]
    return {**_with_status_left(document, directory), "attempts": attempts}


def _with_status_left(entry: Any, directory: str) -> dict[str, Any]:
    fields = FieldReader(entry)
    outcome = outcome_left(directory, fields.text("incarnation"), fields.text("reason"))
    known = {} if outcome is None else {"phase": outcome.phase, "reason": outcome.reason, "message": outcome.message}
    return {**fields.fields, **known}


def _object(content: bytes) -> Mapping[str, Any]:
    if len(content) > _MAX_RECORD_BYTES:
        raise ValueError(f"it has more than {_MAX_RECORD_BYTES >> 20} MiB")
    document = json.loads(content)
    if not isinstance(document, Mapping):
        raise ValueError("it is not an object")  # noqa: TRY004 - what json.loads raises
    return document
