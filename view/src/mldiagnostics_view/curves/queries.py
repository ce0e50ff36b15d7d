"""Answers about the curves of a run: metrics, and visible parts of curves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from mldiagnostics.text.strict_json import finite
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_view.curves.windows import Buckets, Window
from mldiagnostics_view.limits import MAX_CURVE_BUCKETS, MAX_LISTED_METRICS, MAX_SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_view.curves.chunks import CurveChunks
    from mldiagnostics_view.curves.reader import CurveReader, ProcessCurve
    from mldiagnostics_view.curves.windows import Axis


Grouping = Literal["run", "rank", "device"]
"""One curve for all ranks and devices, one for each rank, or one for each device of each rank."""


_OF_PROCESS: Final = frozenset({"hostname", "process_index"})
"""Labels of system metrics that say what the rank says; they would keep hosts apart."""


@dataclass(frozen=True, slots=True)
class CurveQuery:
    """The visible part of some metrics."""

    metrics: tuple[str, ...]
    axis: Axis
    start: float | None
    """First x; None for the beginning of the curves."""
    end: float | None
    buckets: int
    by: Grouping


class _SeriesKey(NamedTuple):
    metric: str
    labels: tuple[tuple[str, str], ...]
    attempt: int
    rank: int
    device: int


def metrics_of(reader: CurveReader, search: str = "") -> dict[str, Any]:
    """Return the metrics of a run as JSON, those without a group first.

    `omitted` counts those beyond the limit.

    Args:
        reader: The run.
        search: Only metrics whose names have each of these words.
    """
    words = search.lower().split()
    with reader.reading:
        grouped: dict[str, list[tuple[ProcessCurve, CurveChunks]]] = defaultdict(list)
        for of, curve in reader.curves(None).items():
            grouped[of.key.metric].append((of, curve))
        names = [name for name in grouped if all(word in name.lower() for word in words)]
        names.sort(key=lambda name: ("/" in name, name))
        listed = [_metric(name, grouped[name]) for name in names[:MAX_LISTED_METRICS]]
        return {"metrics": listed, "omitted": len(names) - len(listed)}


def _metric(name: str, curves: Sequence[tuple[ProcessCurve, CurveChunks]]) -> dict[str, Any]:
    last = max(
        ((of.attempt, -of.rank, -(of.key.device or 0), *curve.last) for of, curve in curves if curve.last),
        key=lambda each: each[:4],
    )
    return {
        "metric": name,
        "unit": curves[-1][1].unit,
        "ranks": len({of.rank for of, _ in curves}),
        "devices": len({of.key.device for of, _ in curves}),
        "count": sum(curve.count for _, curve in curves),
        "steps": _range(curves, "step"),
        "times": _range(curves, "time"),
        "lastTime": timestamp(last[3]),
        "lastValue": finite(last[4]),
    }


def _range(curves: Sequence[tuple[ProcessCurve, CurveChunks]], axis: Axis) -> list[float] | None:
    """Return the lowest and the highest x; None without any."""
    extents = [extent for _, curve in curves if (extent := curve.extent(axis))]
    if not extents:
        return None
    return [min(extent.start for extent in extents), max(extent.end for extent in extents)]


def curves_of(reader: CurveReader, query: CurveQuery) -> dict[str, Any]:
    """Return the visible part of curves as JSON: columns of buckets.

    Processes of one attempt are joined; attempts are separate curves, because steps go back where one resumed.
    """
    with reader.reading:
        curves = reader.curves(frozenset(query.metrics))
        grouped: dict[_SeriesKey, list[CurveChunks]] = defaultdict(list)
        units: dict[str, str] = {}
        for of, curve in sorted(curves.items(), key=lambda each: each[0].rank):
            grouped[_series(of, query.by)].append(curve)
            units[of.key.metric] = curve.unit
        most = MAX_CURVE_BUCKETS // max(1, min(len(grouped), MAX_SERIES))
        window = _window(query, list(curves.values()), most)
        shown = [
            _curve(key, members, window, units[key.metric]) for key, members in sorted(grouped.items())[:MAX_SERIES]
        ]
    return {
        "axis": query.axis,
        "from": window.start,
        "to": window.end,
        "curves": [curve for curve in shown if curve["summary"]["count"]],
        "omitted": max(0, len(grouped) - MAX_SERIES),
    }


def _series(of: ProcessCurve, by: Grouping) -> _SeriesKey:
    rank = -1 if by == "run" else of.rank
    device = -1 if by != "device" or of.key.device is None else of.key.device
    labels = tuple(label for label in of.key.labels if label[0] not in _OF_PROCESS)
    return _SeriesKey(of.key.metric, labels, of.attempt, rank, device)


def _curve(key: _SeriesKey, members: Sequence[CurveChunks], window: Window, unit: str) -> dict[str, Any]:
    buckets = Buckets(window)
    for member in members:
        member.fill(buckets)
    last = _last(members, window)
    return {
        "metric": key.metric,
        "unit": unit,
        "labels": dict(key.labels),
        "attempt": key.attempt,
        "rank": None if key.rank < 0 else key.rank,
        "device": None if key.device < 0 else key.device,
        "summary": {**buckets.summary(), "last": None if last is None else {"x": last[0], "value": finite(last[1])}},
        **buckets.to_json(),
    }


def _last(members: Sequence[CurveChunks], window: Window) -> tuple[float, float] | None:
    """Return x and value of the last point.

    Of several processes at one x, it is that of the lowest rank.
    """
    points = [member.last_point(window.axis, window.start, window.end) for member in members]
    return max(filter(None, points), key=lambda point: point[0], default=None)


def _window(query: CurveQuery, curves: Sequence[CurveChunks], most_buckets: int) -> Window:
    extents = [extent for curve in curves if (extent := curve.extent(query.axis))]
    start = min((extent.start for extent in extents), default=0.0) if query.start is None else query.start
    end = max((extent.end for extent in extents), default=start) if query.end is None else query.end
    return Window(query.axis, start, max(start, end), min(query.buckets, most_buckets))
