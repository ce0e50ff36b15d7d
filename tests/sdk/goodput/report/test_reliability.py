"""Formulas of reliability: the figures of their sources, and general laws."""

from __future__ import annotations

from math import isfinite, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.report import reliability

costs = st.floats(1e-3, 1e4)
lifetimes = st.floats(1, 1e7)


def test_the_running_attempt_counts_as_operation_and_not_as_failure() -> None:
    assert reliability.mean_time_to_failure(3600.0, 3) == 1200.0
    assert reliability.mean_time_to_failure(3600.0, 0) is None


def test_a_share_of_nothing_is_unknown() -> None:
    assert reliability.ratio(1.0, 4.0) == 0.25
    assert reliability.ratio(0.0, 0.0) is None


def test_young_and_daly_for_saves_of_a_minute_and_a_failure_a_day() -> None:
    assert reliability.young_interval(60, 86_400) == pytest.approx(3219.938)
    assert reliability.daly_interval(60, 86_400) == pytest.approx(3180.062, abs=1e-3)


def test_daly_gives_up_where_saving_takes_longer_than_the_job_lives() -> None:
    assert reliability.daly_interval(100, 50) == 50
    assert reliability.daly_interval(101, 50) == 50


@given(costs, lifetimes, st.floats(0.01, 100))
def test_young_has_the_least_overhead(cost: float, mttf: float, factor: float) -> None:
    best = reliability.young_interval(cost, mttf)
    least = reliability.overhead(best, cost, mttf)
    assert least == pytest.approx(sqrt(2 * cost / mttf))
    assert reliability.overhead(best * factor, cost, mttf) >= least * (1 - 1e-9)


@given(costs, lifetimes)
def test_daly_is_finite_positive_and_young_for_cheap_saves(cost: float, mttf: float) -> None:
    daly = reliability.daly_interval(cost, mttf)
    assert isfinite(daly)
    assert daly > 0
    if cost < mttf / 10_000:
        assert daly == pytest.approx(reliability.young_interval(cost, mttf), rel=0.02)


@given(st.floats(1, 1e6), st.floats(0, 1), st.floats(0, 1e6))
def test_scheduling_goodput_times_the_productive_share_is_the_effective_time(
    available: float, share: float, queued: float
) -> None:
    productive, wall = available * share, available + queued
    scheduling = reliability.scheduling_goodput(available, wall)
    assert scheduling is not None
    assert scheduling * share == pytest.approx(reliability.ettr(productive, wall))
