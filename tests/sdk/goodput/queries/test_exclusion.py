"""Time taken out of an account: which intervals count, and how much of a stretch they cover."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.queries.exclusion import get_exclusion_overlap, merged, normalize_intervals

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def test_intervals_are_sorted_and_those_that_touch_are_one() -> None:
    later, first, touching = (NOON + 5 * HOUR, NOON + 6 * HOUR), (NOON, NOON + HOUR), (NOON + HOUR, NOON + 2 * HOUR)
    noon = NOON.timestamp()
    assert normalize_intervals([later, first, touching]) == [(noon, noon + 7200), (noon + 18000, noon + 21600)]


@pytest.mark.parametrize(
    "zone", [timezone.utc, ZoneInfo("UTC"), ZoneInfo("America/Los_Angeles"), timezone(timedelta(hours=5))]
)
def test_any_time_zone_will_do(zone: timezone | ZoneInfo) -> None:
    assert normalize_intervals([(NOON.astimezone(zone), (NOON + HOUR).astimezone(zone))]) == [
        (NOON.timestamp(), NOON.timestamp() + 3600)
    ]


def test_what_is_no_stretch_of_time_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    naive = NOON.replace(tzinfo=None)
    with caplog.at_level(logging.WARNING, "mldiagnostics"):
        assert normalize_intervals([(naive, naive + HOUR), (NOON, NOON), (NOON + HOUR, NOON)]) == []
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert "no time zone" in caplog.text


def test_overlap_is_clipped_to_the_stretch() -> None:
    windows = [(0.0, 2.0), (5.0, 6.0), (9.0, 20.0)]
    assert get_exclusion_overlap(1.0, 10.0, windows) == 3.0
    assert get_exclusion_overlap(2.0, 5.0, windows) == 0.0
    assert get_exclusion_overlap(3.0, 3.0, windows) == 0.0


seconds = st.integers(0, 60)
stretches = st.lists(st.tuples(seconds, seconds).map(sorted).map(tuple), max_size=6)


@given(stretches, seconds, seconds)
def test_each_second_is_covered_once(windows: list[tuple[int, int]], start: int, end: int) -> None:
    covered = {second for since, until in windows for second in range(since, until)}
    disjoint = merged(windows)
    assert disjoint == sorted(disjoint)
    assert all(before[1] < after[0] for before, after in pairwise(disjoint))
    assert get_exclusion_overlap(start, end, disjoint) == len(covered & set(range(start, end)))
