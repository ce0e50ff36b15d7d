"""`mldiag runs edit`: the name, tags and notes of a run, changed after its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.lifecycle.description import MAX_NAME, MAX_NOTES

from mldiagnostics_cli.output import show_rows
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, short_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import RunRow

    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.runs.run_edit import RunEdit
    from mldiagnostics_cli.runs.source import RunSource


def edit_runs(source: RunSource, runs: Sequence[str], edit: RunEdit, output: OutputFormat) -> None:
    """Change the words of runs, and print them as they are now.

    Raises:
        ConfigurationError: A run does not exist, or a value is too long. Nothing is changed then.
    """
    for option, text, limit in (("--name", edit.name, MAX_NAME), ("--notes", edit.notes, MAX_NOTES)):
        if text is not None and len(text) > limit:
            raise ConfigurationError(f"{option}: has {len(text)} characters; pass at most {limit}")
    meant = {(row.directory, row.run_id): row for row in map(source.find, runs)}
    edited = [source.edited(row, edit) for row in meant.values()]
    show_rows(edited, _COLUMNS, output, name=lambda row: row.run_id, document=lambda row: row.to_json())


_COLUMNS: list[TableColumn[RunRow]] = [
    TableColumn("NAME", lambda row: row.name or DASH),
    TableColumn("RUN", lambda row: short_id(row.run_id)),
    TableColumn("TAGS", lambda row: ", ".join(row.tags) or DASH),
    TableColumn("NOTES", lambda row: row.notes or DASH, is_optional=True),
]
