"""`mldiag runs delete`: all files of runs."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from mldiagnostics.errors import ConfigurationError, StoreError
from mldiagnostics.layout import RUN_RECORD
from mldiagnostics.store import open_store

from mldiagnostics_cli.exit_codes import FAILED, PARTIAL
from mldiagnostics_cli.output import is_terminal, note, show_rows
from mldiagnostics_cli.sources import find
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import RunRow
    from mldiagnostics.store import Store

    from mldiagnostics_cli.commands.options import OutputFormat

__all__ = ["delete_runs"]

PARALLEL_DELETES = 32
"""Requests to a bucket at a time, as many as the read model has."""

_RUNNING = frozenset({"Pending", "Active"})


@dataclass(frozen=True, slots=True)
class _RunFiles:
    """A run and its files."""

    row: RunRow
    store: Store
    keys: Sequence[str]
    bytes: int


def delete_runs(
    storage: str, runs: Sequence[str], output: OutputFormat, *, yes: bool, force: bool, dry_run: bool
) -> None:
    """Delete runs after a confirmation, and print which.

    Raises:
        ConfigurationError: A run does not exist or is running, or nobody can confirm. Nothing is deleted then.
    """
    chosen = {row.directory: row for row in (find(storage, run) for run in runs)}
    running = [row for row in chosen.values() if row.phase in _RUNNING]
    if running and not force:
        first = running[0]
        raise ConfigurationError(
            f"{first.name or first.run_id}: is {first.phase}; stop its job first, or delete it with --force"
        )
    found = [_files_of(row) for row in chosen.values()]
    if not dry_run:
        _confirm(found, yes=yes)
    deleted = found if dry_run else [each for each in found if _delete(each)]
    show_rows(deleted, _COLUMNS, output, name=lambda each: each.row.run_id, document=_document)
    if dry_run:
        note("Nothing was deleted: --dry-run.")
    elif len(deleted) < len(found):
        raise click.exceptions.Exit(PARTIAL if deleted else FAILED)


def _files_of(row: RunRow) -> _RunFiles:
    root, _, folder = row.directory.rpartition("/")
    store = open_store(root or "/")  # of the root: it removes the directory of the run with its last file
    entries = list(store.list(folder))
    return _RunFiles(row, store, [entry.key for entry in entries], sum(entry.bytes for entry in entries))


def _confirm(found: Sequence[_RunFiles], *, yes: bool) -> None:
    if yes:
        return
    files, total = sum(len(each.keys) for each in found), size(sum(each.bytes for each in found))
    names = ", ".join(each.row.name or each.row.run_id[:16] for each in found)
    if not (sys.stdin is not None and sys.stdin.isatty() and is_terminal()):
        raise ConfigurationError(f"{names}: not deleted, as there is no terminal to confirm it; pass --yes")
    click.confirm(f"Delete {names} ({files} files, {total})?", abort=True)


def _delete(files: _RunFiles) -> bool:
    """Delete the files of a run; its run.json last, so that an interrupted deletion can be repeated."""
    record = f"{files.row.directory.rpartition('/')[2]}/{RUN_RECORD}"
    try:
        with ThreadPoolExecutor(PARALLEL_DELETES) as workers:
            list(workers.map(files.store.delete, [key for key in files.keys if key != record]))
        files.store.delete(record)
    except StoreError as error:
        note(f"mldiag: {files.row.directory}: not wholly deleted: {error}; run the command again")
        return False
    return True


def _document(files: _RunFiles) -> dict[str, object]:
    row = files.row
    return {
        "runId": row.run_id,
        "displayName": row.name or None,
        "directory": row.directory,
        "files": len(files.keys),
        "bytes": files.bytes,
    }


_COLUMNS: list[TableColumn[_RunFiles]] = [
    TableColumn("NAME", lambda each: each.row.name or DASH),
    TableColumn("RUN", lambda each: each.row.run_id[:16]),
    TableColumn("FILES", lambda each: str(len(each.keys)), is_number=True),
    TableColumn("SIZE", lambda each: size(each.bytes), is_number=True),
    TableColumn("DIRECTORY", lambda each: each.row.directory, is_wide=True),
]
