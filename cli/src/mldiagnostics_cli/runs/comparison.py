"""`mldiag runs compare`: runs side by side."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.render.words import duration, percent
from mldiagnostics.runs import configs
from mldiagnostics.runs.flat_configs import flattened
from mldiagnostics.text.strict_json import finite

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.output import is_terminal, show, show_document, terminal_width
from mldiagnostics_cli.runs.curves import curve_lines, noted_if_unreadable
from mldiagnostics_cli.runs.listing import elapsed_s, phase_text
from mldiagnostics_cli.table import TableColumn, cut_middle, display_width, fitting_columns, table
from mldiagnostics_cli.values import DASH, age, number, some_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mldiagnostics.runs import MetricSeries, RunRow
    from mldiagnostics.runs.run_filter import RunFilter

    from mldiagnostics_cli.runs.source import RunSource


PLOT_HEIGHT = 5
"""Lines of each plot, of which there is one per run."""

_FACT_KEPT = 28
"""Characters of a fact's name that stay where a terminal is narrow."""
_NAME_SHOWN = 16
"""Characters of a run's name above its column: its beginning and its end."""
_LABELS_OF_RANK = frozenset({"hostname", "process_index"})
"""Labels that name the rank: they differ between runs whose series mean the same."""


@dataclass(frozen=True, slots=True)
class _ComparedRun:
    row: RunRow
    settings: Mapping[str, Any]
    curves: Mapping[str, MetricSeries]
    last_metrics: Mapping[str, float]
    is_readable: bool
    """Whether its curves could be read."""

    @property
    def title(self) -> str:
        return f"{cut_middle(self.row.name or DASH, _NAME_SHOWN)} {self.row.run_id[:8]}"


def runs_to_compare(source: RunSource, runs: Sequence[str], group: RunFilter | None) -> list[RunRow]:
    """Return the runs that were named, and those of a group.

    Raises:
        ConfigurationError: There are fewer than two.
    """
    rows = [source.find(run) for run in runs]
    if group is not None:
        named = {(row.directory, row.run_id) for row in rows}
        rows += [row for row in source.rows(group) if (row.directory, row.run_id) not in named]
    if len(rows) < 2:
        given = f"--group {group.run_group}" if group is not None else " ".join(runs) or "compare"
        raise ConfigurationError(
            f"{given}: {len(rows)} run in {source.place} to compare; pass two runs or more, or --group"
        )
    return rows


def compare_runs(
    source: RunSource, rows: Sequence[RunRow], output: OutputFormat, *, metrics: Sequence[str], rank: int
) -> None:
    """Print runs side by side."""
    compared = [_read(source, row, metrics, rank) for row in rows]
    recorded = sorted({name for run in compared for name in run.curves})
    missing = [name for name in metrics if name not in recorded]
    if missing and all(run.is_readable for run in compared):
        raise ConfigurationError(
            f"--metric {missing[0]}: not recorded by rank {rank} of these runs; "
            f"their metrics are: {some_names(recorded, like=missing[0])}"
        )
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(_document(compared, metrics), output)
    else:
        show("\n".join(_page(compared, metrics)))


def _read(source: RunSource, row: RunRow, metrics: Sequence[str], rank: int) -> _ComparedRun:
    curves: dict[str, MetricSeries] = {}
    is_readable = False
    # Without a plot, the last values of the source suffice: files of a volume are not copied for them.
    with noted_if_unreadable(source, row), source.fetched(row) if metrics else nullcontext(row) as readable:
        for curve in source.curves(readable, None, rank=rank):
            labels = "".join(f" {key}={value}" for key, value in curve.labels.items() if key not in _LABELS_OF_RANK)
            device = "" if curve.device is None else f" device={curve.device}"
            curves[f"{curve.metric}{labels}{device}"] = curve
        is_readable = True
    last = {name: curve.value[-1] for name, curve in curves.items() if curve.value}
    [row] = source.accounted([row])
    last_metrics = {**(source.last_metrics(row) or {}), **last}
    return _ComparedRun(row, flattened(configs(row)), curves, last_metrics, is_readable)


def _page(compared: Sequence[_ComparedRun], metrics: Sequence[str]) -> Iterator[str]:
    width = terminal_width()
    yield from _tables(compared, width if is_terminal() else None)
    for name in metrics:
        curves = [run.curves[name] for run in compared if name in run.curves]
        values = [value for curve in curves for value in curve.value if isfinite(value)]
        low, high = (min(values), max(values)) if values else (None, None)
        for run in compared:
            if name in run.curves:
                yield from ("", run.title)
                yield from curve_lines(run.curves[name], width=width, low=low, high=high, height=PLOT_HEIGHT)


def _tables(compared: Sequence[_ComparedRun], width: int | None) -> Iterator[str]:
    """Yield the lines of tables, each with the runs that fit the width."""
    lines = list(_lines(compared, time.time()))
    names: TableColumn[tuple[str, list[str]]] = TableColumn("", lambda line: line[0], least=_FACT_KEPT)
    columns = [
        TableColumn(run.title, _cell(place), least=display_width(run.title)) for place, run in enumerate(compared)
    ]
    while columns:
        fitting = len(columns) if width is None else max(1, fitting_columns([names, *columns], width) - 1)
        if len(columns) < len(compared):
            yield ""
        yield from table(lines, [names, *columns[:fitting]], width=width)
        columns = columns[fitting:]


def _cell(place: int) -> Callable[[tuple[str, list[str]]], str]:
    return lambda line: line[1][place]


def _lines(compared: Sequence[_ComparedRun], now: float) -> Iterator[tuple[str, list[str]]]:
    def each(text_of: Callable[[_ComparedRun], str]) -> list[str]:
        return [text_of(run) for run in compared]

    yield "phase", each(lambda run: phase_text(run.row))
    yield "step", each(lambda run: DASH if run.row.step is None else str(run.row.step))
    yield "step time", each(lambda run: duration(run.row.step_time_s))
    yield "elapsed", each(lambda run: age(elapsed_s(run.row, now)))
    yield "goodput %", each(lambda run: percent(run.row.goodput))
    for key, values in _differences(compared).items():
        yield f"config {key}", [DASH if value is None else str(value) for value in values]
    for name in sorted({name for run in compared for name in run.last_metrics}):
        yield f"last {name}", [number(run.last_metrics.get(name)) for run in compared]


def _differences(compared: Sequence[_ComparedRun]) -> dict[str, list[Any]]:
    """Return the configurations that differ, with the value of each run.

    None where it has none.
    """
    keys = dict.fromkeys(key for run in compared for key in run.settings)
    values = {key: [run.settings.get(key) for run in compared] for key in keys}
    return {key: each for key, each in values.items() if any(value != each[0] for value in each)}


def _document(compared: Sequence[_ComparedRun], metrics: Sequence[str]) -> dict[str, Any]:
    names = sorted({name for run in compared for name in run.last_metrics})
    document: dict[str, Any] = {
        "runs": [run.row.to_json() for run in compared],
        "configs": finite(_differences(compared)),
        "lastMetrics": finite({name: [run.last_metrics.get(name) for run in compared] for name in names}),
    }
    if metrics:
        document["series"] = {
            name: [run.curves[name].to_json() if name in run.curves else None for run in compared] for name in metrics
        }
    return document
