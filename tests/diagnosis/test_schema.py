"""The schema of diagnosis.json accepts what the parser accepts, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.findings import Diagnosis, Figure, Finding, FindingHost, parse_diagnosis
from mldiagnostics_diagnosis.schema import schema

VALIDATOR = Draft202012Validator(schema())
WORDS = st.text("abc ` 1", max_size=20)
AMOUNTS = st.floats(0, 1e15)
HOSTS = st.builds(FindingHost, WORDS, st.none() | st.integers(0, 9), st.none() | WORDS, st.none() | WORDS)
FINDINGS = st.builds(
    Finding,
    code=WORDS,
    severity=st.sampled_from(["critical", "warning", "info"]),
    message=WORDS,
    next_step=WORDS,
    hosts=st.lists(HOSTS, max_size=3).map(tuple),
    host_count=st.integers(0, 1000),
    phase=st.none() | WORDS,
    operation=st.none() | WORDS,
    cost_s=AMOUNTS,
    cost_share=AMOUNTS,
    evidence=st.lists(st.builds(Figure, WORDS, st.floats(-1e15, 1e15), WORDS), max_size=3).map(tuple),
)
DIAGNOSES = st.builds(
    Diagnosis,
    session=WORDS,
    hosts=st.integers(0, 1000),
    steps=st.integers(0, 1000),
    step_s=st.none() | AMOUNTS,
    findings=st.lists(FINDINGS, min_size=1, max_size=3).map(tuple),
)
OTHERS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.just("x" * 1001) | st.just([]) | st.just({})
)


def is_parsed(document: object) -> bool:
    try:
        parse_diagnosis(json.dumps(document).encode(), source="d")
    except ConfigurationError:
        return False
    return True


@given(DIAGNOSES)
def test_every_diagnosis_is_valid(diagnosis: Diagnosis) -> None:
    document = json.loads(json.dumps(diagnosis.to_json()))
    assert is_parsed(document)
    VALIDATOR.validate(document)


@given(DIAGNOSES, OTHERS, st.data())
def test_a_changed_value_is_valid_if_the_parser_accepts_it(
    diagnosis: Diagnosis, other: Any, data: st.DataObject
) -> None:
    document: dict[str, Any] = json.loads(json.dumps(diagnosis.to_json()))
    finding = document["findings"][0]
    part = data.draw(st.sampled_from([document, finding, *finding["hosts"], *finding["evidence"]]))
    key = data.draw(st.sampled_from([*part, "unknown"]))
    part[key] = other
    assert VALIDATOR.is_valid(document) == is_parsed(document), (key, other)


@pytest.mark.parametrize("key", [*schema()["properties"]])
def test_every_field_is_required(key: str) -> None:
    document = Diagnosis("s", 1, 1, 0.1, (Finding("c", "info", "m", "n"),)).to_json()
    del document[key]
    assert not VALIDATOR.is_valid(document)
    assert not is_parsed(document)
