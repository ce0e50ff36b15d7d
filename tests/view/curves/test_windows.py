"""Chunks and buckets against the points themselves."""

from __future__ import annotations

import tempfile

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.runs.points import NO_STEP, PointColumns
from mldiagnostics_view.curves.chunks import CurveChunks, SpillFile
from mldiagnostics_view.curves.windows import Buckets, Window

POINT = st.tuples(st.integers(-50, 2000), st.floats(-1e6, 1e6) | st.just(float("nan")), st.booleans())


@given(st.lists(POINT, max_size=600), st.integers(0, 300), st.integers(0, 1000), st.integers(1, 40))
def test_every_point_of_the_window_counts_once(
    points: list[tuple[int, float, bool]], start: int, length: int, size: int
) -> None:
    with tempfile.TemporaryFile() as file:
        curve = CurveChunks(SpillFile(file))
        steps = [step if has_step else NO_STEP for step, _, has_step in points]
        curve.extend(PointColumns([float(step) for step, _, _ in points], steps, [value for _, value, _ in points]))
        buckets = Buckets(Window("step", start, start + length, size))
        curve.fill(buckets)
    shown = [
        value
        for (step, value, has_step) in points
        if has_step and start <= step <= start + length and value == value  # noqa: PLR0124 - not NaN
    ]
    assert sum(buckets.count) == len(shown)
    assert min(buckets.low) == min(shown, default=float("inf"))
    assert max(buckets.high) == max(shown, default=float("-inf"))
