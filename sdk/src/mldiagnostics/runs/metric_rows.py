"""Metrics of a run: which there are, in which units, and which ranks have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mldiagnostics.runs.metric_lines import MetricLines
from mldiagnostics.runs.record_reader import RecordReader
from mldiagnostics.runs.row import directory_of
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from mldiagnostics.runs.metric_lines import CurveKey, CurvePoints
    from mldiagnostics.runs.row import RunRow


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of a run."""

    name: str
    unit: str
    """Unit as UCUM writes it, such as `s` or `%`; `1` for plain numbers."""
    kind: Literal["number", "per-device"]
    """`per-device` for a metric that was recorded as a list with one number per device."""
    ranks: tuple[int, ...]
    """Ranks that have recorded it."""
    labels: tuple[str, ...]
    """Names of its labels."""
    count: int
    """Number of points that all ranks have recorded."""
    first_t: float
    """Time of the first point, in Unix seconds."""
    last_t: float
    """Time of the last point, in Unix seconds."""

    def to_json(self) -> dict[str, Any]:
        """Return the metric as JSON; times are RFC 3339."""
        return {
            "metric": self.name,
            "unit": self.unit,
            "kind": self.kind,
            "ranks": list(self.ranks),
            "labels": list(self.labels),
            "count": self.count,
            "firstTime": timestamp(self.first_t),
            "lastTime": timestamp(self.last_t),
        }


def metrics(run: RunRow | str, *, rank: int | None = None, attempt: int | None = None) -> list[MetricRow]:
    """Return the metrics that a run has recorded.

    All files of records are read, as by `series` for all metrics. `SeriesReader(run, None, points=…)` has the same
    names and reads only the lines that are new.

    Args:
        run: A row, or the directory of a run: a path or URL.
        rank: Only this rank; None for all.
        attempt: Only this attempt; None for all.

    Returns:
        The metrics, by name.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read.
        StoreError: The files cannot be read.
    """
    lines = MetricLines(None)
    summaries: dict[str, _MetricSummary] = {}
    for block in RecordReader(directory_of(run), rank=rank, attempt=attempt).blocks():
        for key, added in lines.parse(block.lines).items():
            summaries.setdefault(key.metric, _MetricSummary()).add(block.segment.rank, key, added)
    return [summary.row(name) for name, summary in sorted(summaries.items())]


class _MetricSummary:
    """Points of one metric, counted."""

    def __init__(self) -> None:
        self._unit = ""
        self._is_per_device = False
        self._ranks: set[int] = set()
        self._labels: set[str] = set()
        self._count = 0
        self._first_t, self._last_t = float("inf"), float("-inf")

    def add(self, rank: int, key: CurveKey, added: CurvePoints) -> None:
        """Add points of one rank."""
        self._unit = added.unit
        self._is_per_device = self._is_per_device or key.device is not None
        self._ranks.add(rank)
        self._labels.update(name for name, _ in key.labels)
        self._count += len(added.points)
        self._first_t = min(self._first_t, *added.points.t)
        self._last_t = max(self._last_t, *added.points.t)

    def row(self, name: str) -> MetricRow:
        """Return the row of the metric."""
        return MetricRow(
            name=name,
            unit=self._unit,
            kind="per-device" if self._is_per_device else "number",
            ranks=tuple(sorted(self._ranks)),
            labels=tuple(sorted(self._labels)),
            count=self._count,
            first_t=self._first_t,
            last_t=self._last_t,
        )
