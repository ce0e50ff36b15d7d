"""`mldiag profiles list`: sessions as rows."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, StoreError
from mldiagnostics.runs.run_filter import RunFilter
from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import note, show_rows
from mldiagnostics_cli.profiles.references import find_sessions, opened
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, age, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.runs import RunRow, SessionRow

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.runs.source import RunSource


PARALLEL_LISTS = 8
"""Runs whose sessions are listed at a time; each reads up to 32 records of captures at a time itself."""


def show_sessions(choice: SourceChoice, references: Sequence[str], output: OutputFormat) -> None:
    """Print the sessions of runs and log directories, the newest last.

    Without any, print those of all runs of a source.

    Raises:
        ConfigurationError: A reference is neither a run nor a directory.
        ClusterFailure: The cluster rejects it.
        StoreError: The files cannot be listed.
    """
    with opened(choice, references) as source:
        runs = {} if references else _runs_of_all(source)
        rows = [row for each in references for row in find_sessions(source, each)]
        rows += [session for session, _ in runs.values()]
        place = ", ".join(references) or source.place
    if not rows and output in {OutputFormat.TABLE, OutputFormat.WIDE}:
        note(f"No profile sessions in {place}.")
        return
    show_rows(
        sorted(rows, key=lambda row: (row.t or 0.0, row.url)),
        columns(time.time(), {url: _name(run) for url, (_, run) in runs.items()}),
        output,
        name=lambda row: row.url,
        document=lambda row: row.to_json(),
    )


def columns(now: float, runs: Mapping[str, str] | None = None) -> list[TableColumn[SessionRow]]:
    """Return the columns of a table of sessions.

    Args:
        now: Current time in Unix seconds.
        runs: Names of the runs by the URLs of their sessions, if they are several.
    """
    return [
        TableColumn("RUN", lambda row: (runs or {}).get(row.url, DASH), is_optional=True),
        TableColumn("SESSION", lambda row: row.name),
        TableColumn("KIND", lambda row: row.kind),
        TableColumn("HOSTS", lambda row: str(len(row.hosts)) if row.files else DASH, is_number=True, is_optional=True),
        TableColumn("SIZE", lambda row: size(row.bytes) if row.files else DASH, is_number=True, is_optional=True),
        TableColumn("STEP", lambda row: DASH if row.step is None else str(row.step), is_number=True, is_optional=True),
        TableColumn("AGE", lambda row: age(now - row.t) if row.t else DASH, is_number=True),
        TableColumn("TARGETS", _targets, is_wide=True),
        TableColumn("OBJECT", lambda row: row.object or DASH, is_wide=True),
        TableColumn("URL", lambda row: row.url, is_wide=True),
    ]


def _targets(row: SessionRow) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted((row.targets or {}).items())) or DASH


def _runs_of_all(source: RunSource) -> dict[str, tuple[SessionRow, RunRow]]:
    """Return the sessions of all runs by their URLs, each with its run.

    A run whose sessions cannot be listed is noted and left out.
    """
    runs = [row for row in source.rows(RunFilter()) if row.sessions != ()]
    with ThreadPoolExecutor(PARALLEL_LISTS) as workers:
        stored = zip(runs, workers.map(lambda run: _readable_sessions(source, run), runs), strict=True)
        return {session.url: (session, run) for run, sessions in stored for session in sessions}


def _readable_sessions(source: RunSource, run: RunRow) -> Sequence[SessionRow]:
    try:
        return source.sessions(run, with_files=True)
    except (ConfigurationError, StoreError) as error:
        note(f"{printable(_name(run))}: its sessions are left out: {error}")
        return ()


def _name(run: RunRow) -> str:
    return "/".join(filter(None, (run.namespace, run.name or run.run_id)))
