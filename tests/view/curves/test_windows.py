"""Chunks and buckets against the points themselves."""

from __future__ import annotations

import tempfile
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.runs.points import NO_STEP, PointColumns
from mldiagnostics_view.curves.chunks import CurveChunks, SpillFile
from mldiagnostics_view.curves.windows import Buckets, Window

POINT = st.tuples(
    st.integers(-50, 2000),
    st.floats(-1e6, 1e6) | st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.booleans(),
)


@given(st.lists(POINT, max_size=600), st.integers(0, 300), st.integers(0, 1000), st.integers(1, 40))
def test_every_point_of_the_window_counts_once(
    points: list[tuple[int, float, bool]], start: int, length: int, size: int
) -> None:
    with tempfile.TemporaryFile(buffering=0) as file:
        curve = CurveChunks(SpillFile(file))
        steps = [step if has_step else NO_STEP for step, _, has_step in points]
        curve.extend(PointColumns([float(step) for step, _, _ in points], steps, [value for _, value, _ in points]))
        buckets = Buckets(Window("step", start, start + length, size))
        curve.fill(buckets)
        last = curve.last_point("step", start, start + length)
        rows = list(curve.points("step", start, start + length))
    inside = [(step, value) for step, value, has_step in points if has_step and start <= step <= start + length]
    shown = [value for _, value in inside if isfinite(value)]
    assert [repr((step, value)) for _, step, value in rows] == [repr(point) for point in inside]
    highest = max((step for step, _ in inside), default=None)
    assert repr(last) == repr(next((point for point in reversed(inside) if point[0] == highest), None))
    odd = buckets.summary()["nonfinite"]
    assert (odd["nan"], odd["plus"], odd["minus"]) == tuple(
        sum(repr(value) == name for _, value in inside) for name in ("nan", "inf", "-inf")
    )
    assert buckets.summary()["count"] == len(inside)
    assert sum(buckets.count) == len(shown)
    assert min(buckets.low) == min(shown, default=float("inf"))
    assert max(buckets.high) == max(shown, default=float("-inf"))


@given(
    st.lists(st.tuples(st.floats(-50, 2000), st.floats(-1e6, 1e6)), max_size=300),
    st.booleans(),
    st.integers(0, 300),
    st.integers(0, 2000),
    st.integers(1, 40),
)
def test_points_in_order_are_added_as_one_by_one(
    points: list[tuple[float, float]], is_ordered: bool, start: int, length: int, size: int
) -> None:
    if is_ordered:
        points.sort()
    together, alone = (Buckets(Window("time", start, start + length, size)) for _ in range(2))
    together.add_points([x for x, _ in points], [value for _, value in points])
    for x, value in points:
        alone.add_points([x], [value])
    assert (together.count, together.low, together.high) == (alone.count, alone.low, alone.high)
    assert list(together.x) == pytest.approx(list(alone.x))
    assert list(together.value) == pytest.approx(list(alone.value), abs=1e-3)
