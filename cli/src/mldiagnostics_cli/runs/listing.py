"""`mldiag runs list`: runs as rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mldiagnostics.goodput.render.words import duration, percent
from mldiagnostics.runs.run_filter import RunFilter

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import note, show_rows
from mldiagnostics_cli.table import PHASE_COLOURS, TableColumn
from mldiagnostics_cli.values import DASH, age, short_id

if TYPE_CHECKING:
    from mldiagnostics.runs import RunRow

    from mldiagnostics_cli.runs.source import RunSource


_NAME_KEPT = 24
"""Characters of a name that stay where a terminal is narrow: runs of a sweep differ at the end of their names."""


def show_runs(source: RunSource, wanted: RunFilter, output: OutputFormat) -> None:
    """Print the runs of a source."""
    rows = source.rows(wanted)
    rows = rows if output is OutputFormat.NAME else source.accounted(rows)
    if not rows and output in {OutputFormat.TABLE, OutputFormat.WIDE}:
        note(f"No runs in {source.place}{'' if wanted == RunFilter() else ' match'}.")
        return
    show_rows(
        rows,
        columns(time.time(), with_namespace=len({row.namespace for row in rows}) > 1),
        output,
        name=lambda row: row.run_id,
        document=lambda row: row.to_json(),
    )


def columns(now: float, *, with_namespace: bool = False) -> list[TableColumn[RunRow]]:
    """Return the columns of a table of runs, as of `now` in Unix seconds."""
    return [
        TableColumn("NAME", lambda row: row.name or DASH, least=_NAME_KEPT),
        TableColumn("RUN", lambda row: short_id(row.run_id)),
        TableColumn("PHASE", phase_text, colours=PHASE_COLOURS, is_whole=True),
        TableColumn("STEP", lambda row: DASH if row.step is None else str(row.step), is_number=True),
        TableColumn("STEP-TIME", lambda row: duration(row.step_time_s), is_number=True),
        TableColumn("GOODPUT", goodput_text, is_number=True),
        TableColumn("ELAPSED", lambda row: age(elapsed_s(row, now)), is_number=True),
        TableColumn("AGE", lambda row: age(now - row.created) if row.created else DASH, is_number=True),
        TableColumn("TAGS", lambda row: ", ".join(row.tags) or DASH, is_wide=True),
        TableColumn("GROUP", lambda row: row.run_group or DASH, is_wide=True),
        TableColumn("NAMESPACE", lambda row: row.namespace or DASH, is_wide=not with_namespace),
        TableColumn("ATTEMPT", lambda row: DASH if row.attempt is None else str(row.attempt), is_wide=True),
        TableColumn("RANKS", lambda row: DASH if row.world_size is None else str(row.world_size), is_wide=True),
        TableColumn("PROFILES", lambda row: DASH if row.sessions is None else str(len(row.sessions)), is_wide=True),
        TableColumn("DIRECTORY", lambda row: row.directory or DASH, is_wide=True),
    ]


def phase_text(row: RunRow) -> str:
    """Return the phase with its reason."""
    return f"{row.phase} ({row.reason})" if row.reason else row.phase


def goodput_text(row: RunRow) -> str:
    """Return the goodput in percent."""
    return DASH if row.goodput is None else f"{percent(row.goodput)} %"


def elapsed_s(row: RunRow, now: float) -> float | None:
    """Return the seconds from the first start to the end, or to now."""
    return None if row.created is None else (row.ended or now) - row.created
