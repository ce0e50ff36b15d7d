"""`<host>.summary.json`: strict, bounded, versioned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_diagnosis.phases import PHASES
from mldiagnostics_diagnosis.reading.summarizing import MAX_OPERATIONS, MAX_STEPS
from mldiagnostics_diagnosis.summary import MAX_SUMMARY_BYTES, HostSummary, Memory, Operation, Steps, parse_summary


def steps(number: int, seconds: float = 0.041234567) -> Steps:
    series = (seconds,) * number
    return Steps(
        source="annotations",
        total=number,
        numbers=tuple(range(10**6, 10**6 + number)),
        seconds=series,
        arrivals=series,
        waits=series,
        phases=dict.fromkeys(PHASES, series),
    )


def summary(**changes: Any) -> HostSummary:
    return HostSummary(host="trainer-2", trace_bytes=145_692, platform="cpu", duration_s=3.0, **changes)


FULL = summary(
    steps=steps(MAX_STEPS),
    operations=tuple(
        Operation(name="f" * 80, phase="collective", seconds=0.012345678, count=12.5, shape="s" * 80)
        for _ in range(MAX_OPERATIONS)
    ),
    memory=Memory(peak_bytes=2**40, limit_bytes=2**40),
)


def test_the_fullest_summary_fits_its_bound_and_is_read_back() -> None:
    content = FULL.encode()
    assert len(content) <= MAX_SUMMARY_BYTES
    assert parse_summary(content, source="s") == FULL


@given(
    st.binary(max_size=100) | st.recursive(st.none() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_other_content_is_rejected_with_its_source(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"^a/x\.summary\.json: not a summary of version 1: .*; diagnose the "):
        parse_summary(content, source="a/x.summary.json")


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"unknown": 1},
        {"trace_bytes": -1},
        {"duration_s": float("nan")},
        {"host": ""},
        {"host": "h" * 201},
        {"platform": "abacus"},
        {"coverage": 1.5},
        {"operations": [{"name": "a", "phase": "lunch", "seconds": 1.0, "count": 1.0}]},
    ],
)
def test_a_field_outside_of_its_bounds_is_named(change: dict[str, Any]) -> None:
    document = json.loads(summary().encode()) | change
    with pytest.raises(ConfigurationError, match=next(iter(change))):
        parse_summary(json.dumps(document).encode(), source="s")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"seconds": [0.1]}, "lists of different lengths"),
        ({"arrivals": [0.1]}, "arrivals or waits of another length"),
        ({"numbers": [7, 7, 7]}, "a step number occurs twice"),
    ],
)
def test_steps_that_contradict_themselves_are_rejected(change: dict[str, Any], problem: str) -> None:
    document = json.loads(summary(steps=steps(3)).encode())
    document["steps"] |= change
    with pytest.raises(ConfigurationError, match=problem):
        parse_summary(json.dumps(document).encode(), source="s")


def test_a_file_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(ConfigurationError, match=f"more than {MAX_SUMMARY_BYTES}"):
        parse_summary(b" " * (MAX_SUMMARY_BYTES + 1), source="s")
