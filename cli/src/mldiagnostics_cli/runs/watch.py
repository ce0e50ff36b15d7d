"""`mldiag runs watch`: a line for each change of a run."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click
from mldiagnostics.lifecycle.outcome import FINAL

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import FAILED
from mldiagnostics_cli.output import has_colour, show
from mldiagnostics_cli.runs.listing import columns
from mldiagnostics_cli.table import cell_widths, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.runs import RunRow
    from mldiagnostics.runs.run_filter import RunFilter

    from mldiagnostics_cli.runs.source import RunSource


def watch_runs(source: RunSource, wanted: RunFilter, output: OutputFormat, *, interval_s: float) -> None:
    """Print runs, and a line for each change, until Ctrl-C."""
    changes = _ChangePrinter(output)
    while True:
        changes.show(source.accounted(source.rows(wanted)))
        time.sleep(interval_s)


def watch_run(source: RunSource, run: str, output: OutputFormat, *, interval_s: float) -> None:
    """Print a line for each change of one run until it has ended.

    The exit code is 1 if it has failed.
    """
    changes = _ChangePrinter(output)
    row = source.find(run)
    while True:
        changes.show(source.accounted([row]))
        if row.phase in FINAL:
            raise click.exceptions.Exit(FAILED if row.phase == "Failed" else 0)
        time.sleep(interval_s)
        row = source.again(row)


class _ChangePrinter:
    """Prints the rows that have changed since they were printed, below one heading."""

    def __init__(self, output: OutputFormat) -> None:
        self._output = output
        self._shown: dict[tuple[str, ...], tuple[object, ...]] = {}
        self._widths: list[int] = []

    def show(self, rows: Iterable[RunRow]) -> None:
        """Print the rows that are new or have changed."""
        changed = []
        for row in rows:
            state = (row.phase, row.reason, row.attempt, row.step, row.sessions)
            key = row.directory, row.namespace, row.run_id
            if self._shown.get(key) != state:
                self._shown[key] = state
                changed.append(row)
        if not changed:
            return
        if self._output is OutputFormat.JSON:
            show("\n".join(json.dumps(row.to_json(), ensure_ascii=False) for row in changed))
            return
        chosen = [column for column in columns(time.time()) if self._output is OutputFormat.WIDE or not column.is_wide]
        first = not self._widths
        self._widths = cell_widths(changed, chosen, at_least=self._widths)
        show("\n".join(table(changed, chosen, colour=has_colour(), at_least=self._widths, heading=first)))
