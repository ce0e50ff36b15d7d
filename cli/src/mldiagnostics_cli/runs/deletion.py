"""`mldiag runs delete`: all files of runs, or their MLRuns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.runs.reference import DELETION_PREFIX

from mldiagnostics_cli.exit_codes import FAILED, PARTIAL
from mldiagnostics_cli.output import is_terminal, note, show_rows
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, short_id, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.runs.source import DeletableRun, RunSource

__all__ = ["delete_runs"]


def delete_runs(
    source: RunSource, runs: Sequence[str], output: OutputFormat, *, yes: bool, force: bool, dry_run: bool
) -> None:
    """Delete runs after a confirmation, and print which.

    Raises:
        ConfigurationError: A run does not exist or is running, or nobody can confirm. Nothing is deleted then.
    """
    meant = (source.find(run, shortest_prefix=DELETION_PREFIX) for run in runs)
    chosen = {(row.directory, row.run_id): row for row in meant}
    running = [row for row in chosen.values() if row.phase not in FINAL]
    if running and not force:
        first = running[0]
        raise ConfigurationError(
            f"{first.name or first.run_id}: is {first.phase}; stop its job first, or delete it with --force"
        )
    found = [source.deletable(row) for row in chosen.values()]
    if not dry_run:
        _confirm(found, yes=yes)
    deleted = found if dry_run else [each for each in found if _delete(each)]
    show_rows(deleted, _COLUMNS, output, name=lambda each: each.row.run_id, document=_document)
    if dry_run:
        note("Nothing was deleted: --dry-run.")
        return
    for kept in (each for each in deleted if each.files is None and each.row.directory):
        note(f"The files of {kept.row.name or kept.row.run_id} are kept: {kept.row.directory}")
    if len(deleted) < len(found):
        raise click.exceptions.Exit(PARTIAL if deleted else FAILED)


def _confirm(found: Sequence[DeletableRun], *, yes: bool) -> None:
    if yes:
        return
    names = ", ".join(each.row.name or short_id(each.row.run_id) for each in found)
    if not (sys.stdin is not None and sys.stdin.isatty() and is_terminal()):
        raise ConfigurationError(f"{names}: not deleted, as there is no terminal to confirm it; pass --yes")
    files = [each.files for each in found if each.files is not None]
    content = f"{sum(files)} files, {size(sum(each.bytes or 0 for each in found))}" if files else "files are kept"
    click.confirm(f"Delete {names} ({content})?", abort=True)


def _delete(run: DeletableRun) -> bool:
    try:
        run.delete()
    except MLDiagnosticsError as error:
        place = run.row.directory or run.row.name
        note(f"mldiag: {place}: not wholly deleted: {error}; run the command again")
        return False
    return True


def _document(run: DeletableRun) -> dict[str, object]:
    return {
        "runId": run.row.run_id,
        "displayName": run.row.name or None,
        "directory": run.row.directory,
        "files": run.files,
        "bytes": run.bytes,
    }


_COLUMNS: list[TableColumn[DeletableRun]] = [
    TableColumn("NAME", lambda each: each.row.name or DASH),
    TableColumn("RUN", lambda each: short_id(each.row.run_id)),
    TableColumn("FILES", lambda each: DASH if each.files is None else str(each.files), is_number=True),
    TableColumn("SIZE", lambda each: size(each.bytes), is_number=True),
    TableColumn("DIRECTORY", lambda each: each.row.directory or DASH, is_wide=True),
]
