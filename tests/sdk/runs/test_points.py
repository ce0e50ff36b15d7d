"""Down-sampling keeps the ends and the extremes of a curve that grows in pieces."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.runs.points import PointColumns, PointSampler, sample

VALUES = st.floats(width=32) | st.sampled_from([0.0, 1.0, math.nan, math.inf, -math.inf])
CURVES = st.lists(VALUES, max_size=400) | st.integers(0, 5000).map(lambda n: [math.sin(i * 0.7) * i for i in range(n)])
POINTS = st.integers(5, 60)


def columns(values: list[float], start: int = 0) -> PointColumns:
    return PointColumns([float(start + at) for at in range(len(values))], range(start, start + len(values)), values)


def sampler(values: list[float], points: int | None, pieces: list[int] | None = None) -> PointSampler:
    made = PointSampler(points)
    at = 0
    for piece in pieces or []:
        made.extend(columns(values[at : at + piece], at))
        at += len(values[at : at + piece])
    made.extend(columns(values[at:], at))
    return made


def rows(kept: PointColumns) -> list[tuple[float, int, str]]:
    return [(t, step, repr(value)) for t, step, value in zip(kept.t, kept.step, kept.value, strict=True)]


def assert_faithful(values: list[float], kept: list[tuple[float, int, str]], points: int) -> None:
    everything = rows(columns(values))
    assert len(kept) <= points
    assert kept == [each for each in everything if each in set(kept)]
    if len(values) <= points:
        assert kept == everything
    if values:
        assert kept[0] == everything[0]
        assert kept[-1] == everything[-1]
    numbers = [value for value in values if not math.isnan(value)]
    shown = [float(value) for _, _, value in kept]
    if numbers:
        assert min(numbers) == min(value for value in shown if not math.isnan(value))
        assert max(numbers) == max(value for value in shown if not math.isnan(value))
    assert any(map(math.isnan, shown)) == any(map(math.isnan, values))


@given(CURVES, POINTS)
def test_ends_extremes_and_nan_are_kept(values: list[float], points: int) -> None:
    assert_faithful(values, rows(sampler(values, points).sampled()), points)


@given(CURVES, POINTS, st.lists(st.integers(0, 700), max_size=12))
def test_the_size_of_the_pieces_does_not_matter(values: list[float], points: int, pieces: list[int]) -> None:
    assert rows(sampler(values, points, pieces).sampled()) == rows(sampler(values, points).sampled())


@given(CURVES, POINTS, st.lists(st.integers(0, 700), max_size=5))
def test_reading_a_curve_while_it_grows_does_not_change_it(values: list[float], points: int, pieces: list[int]) -> None:
    watched, at = PointSampler(points), 0
    for piece in [*pieces, len(values)]:
        watched.extend(columns(values[at : at + piece], at))
        at += len(values[at : at + piece])
        assert_faithful(values[:at], rows(watched.sampled()), points)
    assert rows(watched.sampled()) == rows(sampler(values, points).sampled())


@given(st.lists(st.lists(VALUES, max_size=80), max_size=6), POINTS)
def test_several_curves_share_the_points(curves: list[list[float]], points: int) -> None:
    samplers, start = [], 0
    for values in curves:
        made = PointSampler(points)
        made.extend(columns(values, start))
        samplers.append(made)
        start += len(values)
    kept = [row for part in sample(samplers, points) for row in rows(part)]
    everything = [value for values in curves for value in values]
    assert_faithful(everything, kept, points)


@given(CURVES)
def test_without_a_number_of_points_all_are_kept(values: list[float]) -> None:
    assert rows(sampler(values, None).sampled()) == rows(columns(values))


def test_every_stretch_keeps_its_extremes() -> None:
    values = [math.sin(at / 50) + (at % 997 == 0) * 5 - (at % 613 == 0) * 7 for at in range(100_000)]
    kept = sampler(values, 2000, [1000] * 90).sampled()
    spikes = {at for at in range(100_000) if at % 997 == 0 or at % 613 == 0}
    assert len(spikes - set(kept.step)) < len(spikes) / 20  # two spikes of one sign may share a stretch
    assert len(kept) > 1000


def test_memory_is_bounded() -> None:
    made = PointSampler(100)
    for start in range(0, 300_000, 1000):
        made.extend(columns([float(start)] * 1000, start))
        assert len(made._kept) <= 1400
    assert made.count == 300_000


@pytest.mark.parametrize("points", [4, 0, -1])
def test_too_few_points_are_an_error(points: int) -> None:
    with pytest.raises(ConfigurationError, match="pass 5 or more"):
        PointSampler(points)
