"""`diagnosis.json`: the written content is read back; everything else is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.findings import (
    MAX_DIAGNOSIS_BYTES,
    Diagnosis,
    Figure,
    Finding,
    FindingHost,
    parse_diagnosis,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=40)
AMOUNTS = st.floats(0, 1e6)
HOSTS = st.builds(FindingHost, TEXTS, st.none() | st.integers(0, 10_000), st.none() | TEXTS, st.none() | TEXTS)
FINDINGS = st.builds(
    Finding,
    code=TEXTS,
    severity=st.sampled_from(["critical", "warning", "info"]),
    message=TEXTS,
    next_step=TEXTS,
    hosts=st.lists(HOSTS, max_size=3).map(tuple),
    host_count=st.integers(0, 1000),
    phase=st.none() | TEXTS,
    operation=st.none() | TEXTS,
    cost_s=AMOUNTS,
    cost_share=AMOUNTS,
    evidence=st.lists(st.builds(Figure, TEXTS, st.floats(-1e6, 1e6), TEXTS), max_size=3).map(tuple),
)
DIAGNOSES = st.builds(
    Diagnosis,
    session=TEXTS,
    hosts=st.integers(0, 1000),
    steps=st.integers(0, 1000),
    step_s=st.none() | AMOUNTS,
    findings=st.lists(FINDINGS, min_size=1, max_size=3).map(tuple),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
EXAMPLE = Diagnosis("s", 4, 50, 0.04, (Finding("SlowHost", "critical", "m", "n", (FindingHost("pod-2"),), 1),))


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@given(DIAGNOSES)
def test_a_diagnosis_is_read_back_as_it_was_written(diagnosis: Diagnosis) -> None:
    assert parse_diagnosis(encoded(diagnosis.to_json()), source="s") == diagnosis


@given(st.binary(max_size=200) | JSON.map(encoded))
def test_other_content_is_rejected_with_its_source(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"^a/d\.json: not a diagnosis of version 1: .*; diagnose again$"):
        parse_diagnosis(content, source="a/d.json")


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("v",), 2, "has version 2"),
        (("findings",), [], "findings: is empty"),
        (("hosts",), True, "hosts: is not a count"),
        (("stepSeconds",), -1, "stepSeconds: is negative"),
        (("stepSeconds",), float("inf"), "stepSeconds: is not between"),
        (("stepSeconds",), float("nan"), "stepSeconds: is not between"),
        pytest.param(("stepSeconds",), 10**400, "stepSeconds: is not between", id="401 digits"),
        (("extra",), 1, "has the unknown field 'extra'"),
        (("findings", 0, "severity"), "fatal", "findings: severity: is not one of critical, warning, info"),
        (("findings", 0, "message"), "a\x1b[2J", "findings: message: is not a text"),
        (("findings", 0, "message"), "a" * 1001, "findings: message: is not a text"),
        (("findings", 0, "hosts"), [EXAMPLE.findings[0].hosts[0].to_json()] * 17, "hosts: is not a list of at most 16"),
        (("findings", 0, "code"), None, "findings: code: is not a text"),
    ],
)
def test_each_bound_is_named(path: tuple[Any, ...], value: object, problem: str) -> None:
    document: Any = EXAMPLE.to_json()
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ConfigurationError) as raised:
        parse_diagnosis(encoded(document), source="d")
    assert problem in str(raised.value)


def test_a_file_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(ConfigurationError, match=f"has {MAX_DIAGNOSIS_BYTES + 1} bytes"):
        parse_diagnosis(b" " * (MAX_DIAGNOSIS_BYTES + 1), source="d")


def test_deep_nesting_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="not a diagnosis"):
        parse_diagnosis(b"[" * 60_000, source="d")
