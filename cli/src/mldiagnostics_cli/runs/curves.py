"""Curves of runs, and a note instead of them if their files cannot be read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.text.counts import counted
from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.output import note
from mldiagnostics_cli.plot import HEIGHT, plot
from mldiagnostics_cli.values import DASH, number, some_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.runs import MetricSeries, RunRow

    from mldiagnostics_cli.runs.source import RunSource


@contextmanager
def noted_if_unreadable(source: RunSource, row: RunRow) -> Iterator[None]:
    """Note why the block cannot read the curves of a run, and end the block.

    Raises:
        MLDiagnosticsError: The error of the block, if the source has no values without the files of the run.
    """
    try:
        yield
    except MLDiagnosticsError as error:
        if source.last_metrics(row) is None:
            raise
        reason = "curves cannot be read, so only the last values that the cluster knows are shown"
        note(printable(f"{row.name or row.run_id}: {reason}: {error}"))


def requested_curves(source: RunSource, row: RunRow, metrics: Sequence[str], *, rank: int) -> list[MetricSeries] | None:
    """Return curves of a run; None, with a note, if they cannot be read.

    Args:
        source: Source of the run.
        row: The run.
        metrics: Names of metrics; without any, no file is read.
        rank: Rank of the process that recorded them.

    Raises:
        ConfigurationError: The rank has not recorded a metric.
    """
    if not metrics:
        return []
    curves: list[MetricSeries] | None = None
    missing: list[str] = []
    every: set[str] = set()
    with noted_if_unreadable(source, row), source.fetched(row) as readable:
        read = source.curves(readable, metrics, rank=rank)
        recorded = {curve.metric for curve in read}
        if unrecorded := [name for name in metrics if name not in recorded]:
            every = {curve.metric for curve in source.curves(readable, None, rank=rank)}
        curves, missing = read, unrecorded
    if missing:
        raise ConfigurationError(
            f"--metric {missing[0]}: rank {rank} has not recorded it; "
            f"its metrics are: {some_names(every, like=missing[0])}"
        )
    return curves


def curve_lines(
    curve: MetricSeries, *, width: int, low: float | None = None, high: float | None = None, height: int = HEIGHT
) -> list[str]:
    """Return a curve as a heading and a plot."""
    steps = [step for step in curve.step if step is not None]
    reach = f"step {steps[0]} to {steps[-1]}" if steps else counted(curve.count, "point")
    unit = "" if curve.unit in {"", "1"} else f" [{curve.unit}]"
    labels = "".join(f", {name}={value}" for name, value in curve.labels.items())
    device = "" if curve.device is None else f", device {curve.device}"
    last = number(curve.value[-1]) if curve.value else DASH
    heading = printable(f"{curve.metric}{unit}: {reach}, last {last}, rank {curve.rank}{device}{labels}")
    return [heading, *plot(curve.value, width=width, height=height, low=low, high=high)]
