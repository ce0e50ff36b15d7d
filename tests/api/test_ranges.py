from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.ranges import RANGES_PATTERN, Ranges

numbers = st.integers(0, 999_999_999)
spans = st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))
small_spans = st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair)))


@given(st.lists(small_spans, min_size=1))
def test_ranges_hold_exactly_what_their_spans_hold(pairs: list[tuple[int, int]]) -> None:
    ranges = Ranges.of(pairs)
    for number in range(75):
        assert (number in ranges) == any(low <= number <= high for low, high in pairs)


@given(st.lists(small_spans, min_size=1))
def test_merged_spans_ascend_and_leave_gaps(pairs: list[tuple[int, int]]) -> None:
    merged = Ranges.of(pairs).spans
    assert all(a[1] + 1 < b[0] for a, b in pairwise(merged))


@given(st.lists(spans, min_size=1))
def test_ranges_survive_a_round_trip_and_match_the_schema(pairs: list[tuple[int, int]]) -> None:
    ranges = Ranges.of(pairs)
    assert Ranges.parse(str(ranges)) == ranges
    assert re.search(RANGES_PATTERN, str(ranges))


@given(st.text("0123456789,- x"))
def test_text_that_the_schema_rejects_is_rejected(text: str) -> None:
    if not re.search(RANGES_PATTERN, text.replace(" ", "")):
        with pytest.raises(ValueError, match=r"not a number or a range|is reversed"):
            Ranges.parse(text)


def test_a_reversed_range_is_rejected() -> None:
    with pytest.raises(ValueError, match="'7-4' is reversed"):
        Ranges.parse("0,7-4")
