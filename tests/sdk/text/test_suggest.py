"""Suggestions for unknown parameters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.text.suggest import parameters, unknown_parameters

KNOWN = ["metric_name", "value", "step", "duration_ms", "process_index_list"]


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [("stp", "step"), ("duration", "duration_ms"), ("process_index", "process_index_list"), ("Value", "value")],
)
def test_the_parameter_that_was_probably_meant_is_named(unknown: str, meant: str) -> None:
    sentence = unknown_parameters("f", [unknown], KNOWN)
    assert sentence == f"f: unknown parameter {unknown!r} is ignored; did you mean {meant!r}?"


def test_without_a_likely_one_all_are_listed() -> None:
    sentence = unknown_parameters("f", ["qqqq"], KNOWN)
    assert sentence.endswith("; the parameters are metric_name, value, step, duration_ms, process_index_list")


def test_several_parameters_share_one_message() -> None:
    sentence = unknown_parameters("f", ["stp", "valu"], KNOWN)
    assert sentence == "f: unknown parameters 'stp', 'valu' are ignored; did you mean 'step', 'value'?"


@given(st.text(min_size=1))
def test_property_any_name_is_shown_on_one_line(unknown: str) -> None:
    assert len(unknown_parameters("f", [unknown], KNOWN).splitlines()) == 1


def test_the_parameters_of_a_function_are_those_that_a_caller_names() -> None:
    def function(a: int, /, b: int, *args: int, c: int = 0, **kwargs: int) -> int:
        for each in args:
            a += each
        return a + b + c + len(kwargs)

    assert parameters(function) == ["a", "b", "c"]
