"""Answers of any content are read or rejected, and pauses stay within their limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.control_plane.answers import (
    LONGEST_PAUSE_S,
    Acknowledgement,
    back_off_s,
    read_answer,
    retry_after_s,
)
from support.records import json_values


@given(st.integers(0, 2**53 - 1), st.integers(0, 2**53 - 1), st.integers(1, 300))
def test_an_answer_of_the_contract_is_read(sequence: int, events: int, interval: int) -> None:
    answer = {"persistedSequence": sequence, "persistedEvents": events, "intervalSeconds": interval, "later": 1}
    assert read_answer(json.dumps(answer).encode()) == Acknowledgement(sequence, events, interval)
    full = answer | {"acceptsEvents": False}
    assert read_answer(json.dumps(full).encode()) == Acknowledgement(sequence, events, interval, accepts_events=False)


@pytest.mark.parametrize(("given", "used"), [(0, 1.0), (-5, 1.0), (1e9, 300.0), (0.5, 1.0), (None, 10.0)])
def test_an_interval_is_kept_within_limits(given: float | None, used: float) -> None:
    answer = {"persistedSequence": 1, "persistedEvents": 0, "intervalSeconds": given}
    assert read_answer(json.dumps(answer).encode()).interval_s == used


@given(st.binary() | json_values().map(lambda value: json.dumps(value).encode()))
def test_other_answers_are_rejected(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_answer(content)


@pytest.mark.parametrize(
    "answer",
    [
        b"[" * 100_000,
        b'{"persistedSequence": true, "persistedEvents": 0}',
        b'{"persistedSequence": -1, "persistedEvents": 0}',
        b'{"persistedSequence": 1}',
        b'{"persistedSequence": 1, "persistedEvents": 0, "intervalSeconds": "10"}',
    ],
)
def test_an_incomplete_answer_is_rejected(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_answer(answer)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0", 0.0), (" 5 ", 5.0), ("9" * 50, 300.0), (None, None), ("", None), ("-1", None), ("soon", None), ("٣", None)],
)
def test_retry_after_is_read_in_seconds(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_pauses_double_up_to_a_minute_and_spread_over_their_second_half(failures: int, luck: float) -> None:
    whole = back_off_s(failures, luck=1)
    assert whole == min(LONGEST_PAUSE_S, 2.0 ** min(failures - 1, 10))
    assert whole / 2 <= back_off_s(failures, luck=luck) <= whole
