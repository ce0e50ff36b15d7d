"""When an open step is called a hang, and when it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.report import hang
from mldiagnostics.goodput.report.numbers import percentile


def test_a_step_may_take_ten_times_the_usual() -> None:
    assert hang.allowed([10.0] * 50, first=False, longest_startup_s=0) == 100.0


def test_rare_long_steps_are_not_hangs() -> None:
    assert hang.allowed([10.0] * 90 + [200.0] * 10, first=False, longest_startup_s=0) == 600.0


def test_short_steps_may_take_30_s() -> None:
    assert hang.allowed([0.01] * 50, first=False, longest_startup_s=0) == 30.0


def test_the_first_step_of_an_attempt_compiles() -> None:
    assert hang.allowed([1.0] * 50, first=True, longest_startup_s=20) == 1800.0
    assert hang.allowed([1.0] * 50, first=True, longest_startup_s=300) == 3000.0


def test_nothing_is_suspected_without_steps_to_compare_with() -> None:
    assert hang.allowed([1.0] * 9, first=False, longest_startup_s=0) is None
    assert not hang.assess(3, 1e6, None).suspected
    assert not hang.assess(None, None, 30.0).suspected


def test_a_step_is_suspected_when_it_is_older_than_allowed() -> None:
    assert not hang.assess(7, 30.0, 30.0).suspected
    assert hang.assess(7, 30.1, 30.0).suspected


@given(st.lists(st.floats(0, 1e6), min_size=10, max_size=60))
def test_no_step_that_has_been_seen_often_is_a_hang(recent: list[float]) -> None:
    allowed = hang.allowed(recent, first=False, longest_startup_s=0)
    assert allowed is not None
    assert allowed >= percentile(sorted(recent), 99)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 100))
def test_percentiles_lie_between_the_ends_and_rise(values: list[float], percent: float) -> None:
    ordered = sorted(values)
    assert ordered[0] <= percentile(ordered, percent) <= ordered[-1]
    assert percentile(ordered, percent / 2) <= percentile(ordered, percent)


def test_percentiles_interpolate() -> None:
    assert percentile([1.0, 2.0], 50) == 1.5
    assert percentile([1.0, 2.0, 10.0], 90) == pytest.approx(8.4)
    with pytest.raises(ValueError, match="at least one value"):
        percentile([], 50)
