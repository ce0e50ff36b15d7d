"""Read model of runs: rows, ranks, curves, sessions and goodput from their files.

Everything that shows runs reads them here. It needs no cluster and no other package: a local directory is read
directly, buckets through `mldiagnostics.store`. A running job is read while it writes.

    from mldiagnostics.runs import find_run, list_runs, series

    for row in list_runs("gs://bucket/runs", phase="Active"):
        print(row.to_json())
    run = find_run("gs://bucket/runs", "4f6c")
    [loss] = series(run, "loss", rank=0, points=1000)

Functions take a `RunRow`, or the directory of a run as a path or URL. Values that are not known: None or an empty text.
Each row has `to_json()`.
"""

from __future__ import annotations

from mldiagnostics.runs.attempt_row import AttemptRow
from mldiagnostics.runs.finding import attempt_rows, find_run, ranks
from mldiagnostics.runs.finding_rows import FindingRow, findings
from mldiagnostics.runs.last_values import last_values
from mldiagnostics.runs.listing import configs, list_runs
from mldiagnostics.runs.metric_rows import MetricRow, metrics
from mldiagnostics.runs.rank_row import RankRow
from mldiagnostics.runs.record_queries import EventRow, events, read_records
from mldiagnostics.runs.row import RunRow
from mldiagnostics.runs.run_goodput import goodput, goodput_over_time, step_times, with_goodput
from mldiagnostics.runs.run_record import run_at
from mldiagnostics.runs.series_reader import MetricSeries, SeriesReader, series
from mldiagnostics.runs.session_rows import SessionFile, SessionRow, sessions

__all__ = [
    "AttemptRow",
    "EventRow",
    "FindingRow",
    "MetricRow",
    "MetricSeries",
    "RankRow",
    "RunRow",
    "SeriesReader",
    "SessionFile",
    "SessionRow",
    "attempt_rows",
    "configs",
    "events",
    "find_run",
    "findings",
    "goodput",
    "goodput_over_time",
    "last_values",
    "list_runs",
    "metrics",
    "ranks",
    "ranks_of",
    "read_records",
    "run_at",
    "series",
    "sessions",
    "step_times",
    "with_goodput",
]


def ranks_of(storage: str, run_id: str, *, now: float | None = None) -> list[RankRow]:
    """Return `ranks` of the run with this id below a root, a path or URL."""
    return ranks(f"{storage.rstrip('/')}/{run_id}", now=now)
