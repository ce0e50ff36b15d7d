"""The time of a step: the median, which one slow step does not change."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.run.step_times import RECENT, StepStarts, median_step_s

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


def test_the_recent_steps_count() -> None:
    recent = StepStarts()
    for step in range(3 * RECENT):
        recent.note((float(step if step < 2 * RECENT else 7 * step), step))
    assert recent.median_s() == 7.0
