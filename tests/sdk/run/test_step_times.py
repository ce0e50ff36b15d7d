"""The time of a step: the median, which one slow step does not change, and a slower run soon."""

from __future__ import annotations

import math
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.run.step_times import FEWEST, MOST, RECENT_S, StepStarts, median_step_s

DURATIONS = st.lists(st.floats(0.001, 1000), min_size=1, max_size=40)


def starts(durations: list[float]) -> list[tuple[float, int]]:
    return list(zip(accumulate(durations, initial=100.0), range(len(durations) + 1), strict=True))


@given(DURATIONS)
def test_the_time_of_a_step_is_one_of_the_durations_or_between_two(durations: list[float]) -> None:
    median = median_step_s(starts(durations))
    assert median is not None
    margin = 1e-6
    assert sum(each <= median + margin for each in durations) >= len(durations) / 2
    assert sum(each >= median - margin for each in durations) >= len(durations) / 2


@given(st.floats(0.001, 10), st.floats(11, 10_000), st.integers(3, 30))
def test_one_slow_step_does_not_change_the_time_of_a_step(usual: float, slow: float, number: int) -> None:
    median = median_step_s(starts([usual] * number + [slow] + [usual] * number))
    assert median is not None
    assert abs(median - usual) < 1e-6


def test_skipped_numbers_share_the_time_and_a_restore_ends_no_step() -> None:
    assert median_step_s([(0.0, 0), (10.0, 10)]) == 1.0
    assert median_step_s([(0.0, 5), (1.0, 2)]) is None
    assert median_step_s([(0.0, 5), (1.0, 2), (3.0, 3)]) == 2.0
    assert median_step_s([]) is None


@given(st.floats(0.01, 60), st.floats(1.2, 5))
def test_a_run_that_gets_slower_shows_it_after_20_seconds_or_3_steps(usual: float, slower: float) -> None:
    slow = usual * slower
    late = max(FEWEST // 2 + 1, math.ceil(RECENT_S / slow))
    recent = StepStarts()
    for start in starts([usual] * MOST + [slow] * min(late, MOST)):
        recent.note(start)
    median = recent.median_s()
    assert median is not None
    assert math.isclose(median, slow, rel_tol=1e-6)


def test_the_newest_of_many_steps_count() -> None:
    recent = StepStarts()
    for number in range(10 * MOST):
        recent.note((number / 1000, number))
    assert abs((recent.median_s() or 0) - 0.001) < 1e-9
