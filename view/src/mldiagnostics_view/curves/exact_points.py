"""The points of metrics as they were recorded: rows of a table, or CSV."""

from __future__ import annotations

import csv
from io import StringIO
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.runs.points import NO_STEP
from mldiagnostics.text.strict_json import finite
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_view.curves.queries import CurveQuery
    from mldiagnostics_view.curves.reader import CurveReader


_COLUMNS: Final = ("metric", "rank", "attempt", "device", "labels", "step", "time", "value")


def points_of(reader: CurveReader, query: CurveQuery, *, most: int) -> dict[str, Any]:
    """Return the points of a window as JSON.

    `isCut` is true if there are more than `most`.
    """
    with reader.reading:
        rows = list(islice(_rows(reader, query), most + 1))
    return {"columns": _COLUMNS, "rows": rows[:most], "isCut": len(rows) > most}


def csv_of(reader: CurveReader, query: CurveQuery, *, most: int) -> str | None:
    """Return the points of a window as CSV with a head; None for more than `most`."""
    points = points_of(reader, query, most=most)
    if points["isCut"]:
        return None
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([_COLUMNS, *points["rows"]])
    return text.getvalue()


def _rows(reader: CurveReader, query: CurveQuery) -> Iterator[tuple[object, ...]]:
    start = -inf if query.start is None else query.start
    end = inf if query.end is None else query.end
    for of, curve in sorted(reader.curves(frozenset(query.metrics)).items(), key=lambda each: str(each[0])):
        labels = ";".join(f"{name}={value}" for name, value in of.key.labels)
        for t, step, value in curve.points(query.axis, start, end):
            shown = None if step == NO_STEP else int(step)
            yield of.key.metric, of.rank, of.attempt, of.key.device, labels, shown, timestamp(t), finite(value)
