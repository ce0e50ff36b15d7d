from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.formats import format_time, parse_time, quote
from support.cluster.strategies import instants

if TYPE_CHECKING:
    import datetime as dt


@given(instants())
def test_a_formatted_time_is_parsed_back_and_ends_in_z(instant: dt.datetime) -> None:
    text = format_time(instant)
    assert text.endswith("Z")
    assert parse_time(text) == instant.replace(microsecond=0)


@pytest.mark.parametrize("text", [None, 7, "", "2026-04-24T03:04:05+00:00", "yesterdayZ"])
def test_other_times_are_rejected(text: object) -> None:
    with pytest.raises(ValueError, match=r"creation time|isoformat"):
        parse_time(text)


@given(st.text() | st.integers() | st.none())
def test_property_a_quoted_value_is_short_ascii(value: object) -> None:
    text = quote(value)
    assert text.isascii() or text.endswith("…'")
    assert len(text) <= 82


def test_a_deeply_nested_value_is_quoted_by_its_type() -> None:
    value: object = 0
    for _ in range(100_000):
        value = [value]
    assert quote(value) == "a deeply nested list"
