"""Curves of metrics, down-sampled while they are read; incremental."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.runs.metric_lines import CurveKey, MetricLines
from mldiagnostics.runs.points import NO_STEP, PointSampler, sample
from mldiagnostics.runs.record_reader import RecordReader
from mldiagnostics.runs.row import directory_of
from mldiagnostics.text.strict_json import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mldiagnostics.runs.row import RunRow


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One curve: a metric of one rank with one set of labels, in columns.

    The points of attempts follow each other, and those of a restarted process; within a process they are in the order
    in which they were recorded. Steps can go back where a new attempt resumed from a checkpoint.
    """

    metric: str
    unit: str
    """Unit as UCUM writes it, such as `s` or `%`; `1` for plain numbers."""
    rank: int
    labels: Mapping[str, str]
    device: int | None
    """Place in the list, for a metric that was recorded as one number per device; else None."""
    t: Sequence[float]
    """Times in Unix seconds."""
    step: Sequence[int | None]
    """Steps; None for points that were recorded without."""
    value: Sequence[float]
    """Values; NaN and infinities are kept."""
    attempt: Sequence[int]
    count: int
    """Number of recorded points; the columns may hold fewer."""

    def to_json(self) -> dict[str, Any]:
        """Return the curve as JSON; a number that is not finite is a name such as `"NaN"`."""
        return {
            "metric": self.metric,
            "unit": self.unit,
            "rank": self.rank,
            "labels": dict(self.labels),
            "device": self.device,
            "t": list(self.t),
            "step": list(self.step),
            "value": finite(list(self.value)),
            "attempt": list(self.attempt),
            "count": self.count,
        }


def series(
    run: RunRow | str,
    metric: str | Iterable[str] | None,
    *,
    rank: int | None = None,
    attempt: int | None = None,
    points: int | None = None,
) -> list[MetricSeries]:
    """Return the curves of a metric.

    Args:
        run: A row, or the directory of a run: a path or URL.
        metric: Name of the metric, several names, or None for all metrics.
        rank: Only this rank; None for all. Files of other ranks are not read.
        attempt: Only this attempt; None for all.
        points: At most so many points in each curve (5 or more), and as much memory only: the first and the last
            point, and of each stretch of the curve the lowest, the highest and a NaN. None keeps all points.

    Returns:
        The curves, by metric, labels, device and rank; none for a metric that was not recorded.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read, or `points` is less than 5.
        MissingExtraError: the bucket needs the extra `gcs`, `s3` or `azure`.
        StoreError: The files cannot be read.

    Example:
        run = find_run("gs://bucket/runs", "4f6c")
        for curve in series(run, "loss", rank=0, points=1000):
            plot(curve.step, curve.value)
    """
    return SeriesReader(run, metric, rank=rank, attempt=attempt, points=points).read()


class SeriesReader:
    """Reads the curves of metrics, each time only the lines that are new.

    Arguments and errors are those of `series`. Used by one thread at a time.

    Example:
        reader = SeriesReader(run, "loss", points=1000)
        while True:
            draw(reader.read())
            time.sleep(10)
    """

    def __init__(
        self,
        run: RunRow | str,
        metric: str | Iterable[str] | None,
        *,
        rank: int | None = None,
        attempt: int | None = None,
        points: int | None = None,
    ) -> None:
        self._names = [metric] if isinstance(metric, str) else None if metric is None else list(metric)
        self._points = points
        PointSampler(points)  # raises now, and not with the first point
        self._records = RecordReader(directory_of(run), rank=rank, attempt=attempt)
        self._restarts = 0
        self._clear()

    @property
    def bad_lines(self) -> int:
        """Number of lines that are left out: broken, or of a later schema."""
        return self._lines.bad_lines

    @property
    def bytes_read(self) -> int:
        """Number of bytes that were read so far."""
        return self._records.bytes_read

    def read(self) -> list[MetricSeries]:
        """Return the whole curves as of now, as `series` does.

        Raises `StoreError`; the next call continues.
        """
        for block in self._records.blocks():
            self._follow_restart()
            process = block.segment.attempt, block.segment.incarnation
            for key, added in self._lines.parse(block.lines).items():
                curve = self._curves.setdefault((key, block.segment.rank), {})
                if process not in curve:
                    curve[process] = PointSampler(self._points)
                curve[process].extend(added.points)
                self._units[key.metric] = added.unit
        self._follow_restart()
        return [self._shown(key, rank, curve) for (key, rank), curve in sorted(self._curves.items(), key=_order)]

    def _clear(self) -> None:
        self._lines = MetricLines(self._names)
        self._curves: dict[tuple[CurveKey, int], dict[tuple[int, str], PointSampler]] = {}
        self._units: dict[str, str] = {}

    def _follow_restart(self) -> None:
        if self._restarts != self._records.restarts:
            self._restarts = self._records.restarts
            self._clear()

    def _shown(self, key: CurveKey, rank: int, curve: Mapping[tuple[int, str], PointSampler]) -> MetricSeries:
        processes = sorted(curve.items(), key=lambda each: (each[0][0], each[1].first_t, each[0][1]))
        parts = sample([sampler for _, sampler in processes], self._points)
        t, value, attempts = array("d"), array("d"), array("q")
        steps: list[int | None] = []
        for ((attempt, _), _), part in zip(processes, parts, strict=True):
            t.extend(part.t)
            value.extend(part.value)
            steps.extend(None if step == NO_STEP else step for step in part.step)
            attempts.extend([attempt] * len(part))
        return MetricSeries(
            metric=key.metric,
            unit=self._units[key.metric],
            rank=rank,
            labels=dict(key.labels),
            device=key.device,
            t=t,
            step=steps,
            value=value,
            attempt=attempts,
            count=sum(sampler.count for sampler in curve.values()),
        )


def _order(curve: tuple[tuple[CurveKey, int], object]) -> tuple[object, ...]:
    (key, rank), _ = curve
    return key.metric, key.labels, -1 if key.device is None else key.device, rank
