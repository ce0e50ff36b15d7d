"""Times of logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.trace.moments import microseconds, of_glog

TIMES = st.datetimes(datetime(1970, 1, 2), datetime(2199, 1, 1))  # noqa: DTZ001 - the zone is added below


@given(time=TIMES)
def test_a_calendar_time_is_exact_to_the_microsecond(time: datetime) -> None:
    aware = time.replace(tzinfo=UTC)
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert microseconds(aware.isoformat()) == expected
    assert microseconds(aware.strftime("%Y-%m-%d %H:%M:%S,%f")) == expected
    assert microseconds(aware.strftime("%Y-%m-%dT%H:%M:%S.%f789Z")) == expected
    assert of_glog(aware.strftime("%m%d %H:%M:%S.%f"), aware.year) == expected


@given(seconds=st.integers(100_000_000, 7_258_118_400))
def test_a_number_is_read_in_its_unit(seconds: int) -> None:
    assert {microseconds(seconds * unit) for unit in (1, 1000, 1_000_000, 1_000_000_000)} == {seconds * 1_000_000}


@pytest.mark.parametrize("value", ["", "soon", "2026-13-01T00:00:00Z", True, None, -1, 1e30, float("nan"), {}])
def test_other_values_are_not_times(value: object) -> None:
    assert microseconds(value) is None
