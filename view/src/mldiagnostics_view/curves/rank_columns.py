"""Values of each rank in columns of time, for a heat map and the steps."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_view.curves.windows import Buckets, Window
from mldiagnostics_view.limits import MAX_HEAT_CELLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_view.curves.chunks import CurveChunks
    from mldiagnostics_view.curves.reader import CurveReader


_TIMES: Final = 200


@dataclass(frozen=True, slots=True)
class RankQuery:
    """Columns of time for all ranks."""

    metric: str | None
    """None for the time of a step between two heartbeats."""
    columns: int


def rank_columns(reader: CurveReader, query: RankQuery) -> dict[str, Any]:
    """Return the mean of each rank in columns of equal time, as JSON.

    A rank without values in a column has null there.
    """
    with reader.reading:
        members: dict[tuple[int, int], list[CurveChunks]] = defaultdict(list)
        if query.metric is None:
            for process, curve in reader.beats.items():
                members[process.rank, process.attempt].append(curve)
        else:
            for of, curve in reader.curves(frozenset({query.metric})).items():
                members[of.rank, of.attempt].append(curve)
        ranks = sorted({rank for rank, _ in members})
        columns = max(1, min(query.columns, MAX_HEAT_CELLS // max(1, len(ranks))))
        extents = [extent for each in members.values() for curve in each if (extent := curve.extent("time"))]
        start = min((extent.start for extent in extents), default=0.0)
        window = Window("time", start, max((extent.end for extent in extents), default=start), columns)
        rows: dict[int, list[float | None]] = {rank: [None] * columns for rank in ranks}
        for (rank, _), curves in sorted(members.items()):  # a later attempt replaces the values of an earlier one
            for at, value in _values(curves, window, is_pace=query.metric is None):
                rows[rank][at] = float(f"{value:.5g}")
    return {
        "metric": query.metric,
        "from": window.start,
        "to": window.end,
        "ranks": ranks,
        "rows": [rows[rank] for rank in ranks],
    }


def steps_at_times(reader: CurveReader) -> dict[str, list[float]]:
    """Return times and steps by heartbeats of the lowest rank of each attempt.

    They are in the order of time.
    """
    with reader.reading:
        lowest: dict[int, int] = {}
        for process in reader.beats:
            lowest[process.attempt] = min(process.rank, lowest.get(process.attempt, process.rank))
        points: list[tuple[float, float]] = []
        for process, curve in reader.beats.items():
            extent = curve.extent("time")
            if extent is not None and lowest[process.attempt] == process.rank:
                buckets = Buckets(Window("time", *extent, _TIMES))
                curve.fill(buckets)
                points += [(x, value) for _, x, value in buckets.means()]
    points.sort()
    return {"t": [round(t, 3) for t, _ in points], "step": [round(step, 1) for _, step in points]}


def _values(curves: Sequence[CurveChunks], window: Window, *, is_pace: bool) -> list[tuple[int, float]]:
    buckets = Buckets(window)
    for curve in curves:
        curve.fill(buckets)
    means = buckets.means()
    if not is_pace:
        return [(at, value) for at, _, value in means]
    values: list[tuple[int, float]] = []
    for (before, t, step), (after, later, last) in pairwise(means):
        if last > step:
            pace = (later - t) / (last - step)
            values += [(at, pace) for at in range(before if not values else before + 1, after + 1)]
    return values
