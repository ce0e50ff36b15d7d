"""Accepted texts for moments, durations and ranges, and the errors for others."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.options import exclusions, interval, moment, positive, window
from support.programs.interpreters import python_of

if TYPE_CHECKING:
    from support.programs.interpreters import Age

TEN = 1_795_255_200_000_000  # 2026-11-21T10:00:00Z


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T10:00:00Z",
        "2026-11-21T10:00:00",
        "2026-11-21 10:00:00+00:00",
        "2026-11-21T11:00:00+01:00",
        "1795255200",
    ],
)
def test_a_moment_is_read_from_each_form(text: str) -> None:
    assert moment(text) == TEN


@pytest.mark.parametrize("age", ["oldest", "newest"])
def test_fractions_of_a_second_are_read_by_every_python(age: Age) -> None:
    program = "from mldiagnostics.goodput.options import moment; print(*map(moment, __import__('sys').argv[1:]))"
    texts = ["2026-11-21T10:00:00.5Z", "2026-11-21T10:00:00.123456789Z", "2026-11-21T10:00:00.000000+00:00"]
    source = str(Path(__file__).parents[3] / "sdk/src")
    command = [python_of(age), "-c", program, *texts]
    ended = subprocess.run(command, env={"PYTHONPATH": source}, capture_output=True, check=True)
    assert [int(each) - TEN for each in ended.stdout.split()] == [500_000, 123_456, 0]


@pytest.mark.parametrize("text", ["", "yesterday", "nan", "inf", "-1", "1e300", "2026-13-01", "1795255200000"])
def test_an_invalid_moment_is_reported(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a moment"):
        moment(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("45s", 45), ("30m", 1800), ("30 min", 1800), ("1.5h", 5400), ("7d", 604_800), ("2w", 1_209_600)],
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert window(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1 year", "-1h", "0", "nan", "9" * 40 + "w"])
def test_an_invalid_duration_is_reported(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a length of time"):
        window(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "many", ""])
def test_an_invalid_number_is_reported(text: str) -> None:
    assert positive("0.5") == 0.5
    with pytest.raises(ConfigurationError, match="not a number above 0"):
        positive(text)


def test_an_interval_ends_after_it_begins() -> None:
    assert interval("0", "1.5") == (0, 1_500_000)
    with pytest.raises(ConfigurationError, match="does not end after its start"):
        interval("5", "5")


def test_exclusions_are_read_as_the_peer_writes_them() -> None:
    entries = [{"start_time_utc": "2026-11-21T10:00:00Z", "end_time_utc": "2026-11-21T10:00:01", "why": "upgrade"}]
    assert exclusions(json.dumps(entries), "x.json") == [(TEN, TEN + 1_000_000)]
    assert exclusions("[]", "x.json") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "x.json: not JSON"),
        ("[" * 100_000, "x.json: not JSON"),
        ("{}", "x.json: not a list"),
        ('["a"]', "x.json, entry 1: no start_time_utc"),
        ('[{"start_time_utc": "2026"}]', "x.json, entry 1: no"),
        ('[{"start_time_utc": "5", "end_time_utc": "4"}]', "x.json, entry 1: interval"),
        ('[{"start_time_utc": "0", "end_time_utc": null}]', "x.json, entry 1: 'None': not a moment"),
    ],
)
def test_invalid_exclusions_are_reported_with_file_and_entry(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        exclusions(text, "x.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_read_or_reported(document: object) -> None:
    with suppress(ConfigurationError):
        assert all(start < end for start, end in exclusions(json.dumps(document), "x.json"))


@given(st.text())
def test_any_text_is_a_moment_or_reported(text: str) -> None:
    with suppress(ConfigurationError):
        assert 0 <= moment(text) < 7_258_118_400_000_000
