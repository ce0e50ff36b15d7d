"""`mldiag runs delete`: all files of runs, or their MLRuns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.runs.reference import DELETION_PREFIX
from mldiagnostics.text.counts import counted

from mldiagnostics_cli.deletion import confirm, delete_each, finish
from mldiagnostics_cli.output import note, show_rows
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, short_id, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.runs.source import DeletableRun, RunSource


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
    if not dry_run and not yes:
        names = ", ".join(each.row.name or short_id(each.row.run_id) for each in found)
        confirm(names, f"Delete {names} ({_content(found)})?")
    deleted = (
        found
        if dry_run
        else delete_each(found, lambda run: run.delete(), place=lambda run: run.row.directory or run.row.name)
    )
    show_rows(deleted, _COLUMNS, output, name=lambda each: each.row.run_id, document=_document)
    for kept in (each for each in deleted if not dry_run and each.files is None and each.row.directory):
        note(f"The files of {kept.row.name or kept.row.run_id} are kept: {kept.row.directory}")
    finish(found, deleted, dry_run=dry_run)


def _content(found: Sequence[DeletableRun]) -> str:
    files = [each.files for each in found if each.files is not None]
    return (
        f"{counted(sum(files), 'file')}, {size(sum(each.bytes or 0 for each in found))}" if files else "files are kept"
    )


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
