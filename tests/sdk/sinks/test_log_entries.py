"""Cloud Logging entries have the form of Google's SDK and hold the whole record."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks.log_entries import entry_of
from support.records import RUN, origin, records

ORIGIN = replace(origin(), slice=1)
T = 1_777_000_000.25


def entry(record: Record) -> dict[str, Any]:
    first = entry_of(record, ORIGIN, project="my-project", region="us-central1")
    assert first is not None
    return first


def test_a_metric_has_googles_form() -> None:
    first = entry(Record("metric", T, "loss", 0.5, step=3, labels={"a": "b"}, unit="1", rank=2, attempt=1))
    assert first["logName"] == "projects/my-project/logs/ml_diagnostics_metric"
    assert first["resource"] == {
        "type": "generic_node",
        "labels": {"project_id": "my-project", "location": "us-central1", "namespace": "loss", "node_id": RUN},
    }
    assert first["severity"] == "INFO"
    assert first["timestamp"] == "2026-04-24T03:06:40.250000Z"
    assert first["jsonPayload"] == {"values": [0.5], "step_index": 3, "a": "b", "unit": "1"}
    assert first["labels"] == {"run": "test", "host": "host", "rank": "2", "attempt": "1", "slice": "1"}


def test_heartbeats_and_steps_have_no_entry() -> None:
    for record in (Record("heartbeat", T, "alive"), Record("event", T, "goodput", payload={"step_count": 1})):
        assert entry_of(record, ORIGIN, project="my-project", region="us-central1") is None


def test_an_entry_has_the_values_of_all_devices() -> None:
    labels = {"hostname": "h0", "accelerator_type": "tpu"}
    payload = entry(Record("metric", T, "hbm_utilization", (1.0, 2.0), labels=labels, unit="%"))["jsonPayload"]
    assert payload["values"] == [1.0, 2.0]
    assert payload["accelerator_labels"] == ["h0-tpu0", "h0-tpu1"]


def test_configurations_have_googles_names() -> None:
    sections = {"software": {"jax": "0.10"}, "hardware": {}, "user": {"lr": 0.1, "layers": {"n": 2}}}
    first = entry(Record("config", T, "configs", payload=sections))
    assert first["resource"]["labels"]["namespace"] == "mlrun_configs"
    assert first["jsonPayload"] == {
        "userConfigs": {"lr": "0.1", "layers": "{'n': 2}"},
        "softwareConfigs": {"jax": "0.10"},
        "hardwareConfigs": {},
        "namespace": "mlrun_configs",
    }


def test_strings_and_dicts_are_the_payload_below_their_name() -> None:
    first = entry(Record("event", T, "note", payload={"message": "saved"}))
    assert first["resource"]["labels"]["namespace"] == "note"
    assert first["jsonPayload"] == {"message": "saved"}


@pytest.mark.parametrize(
    ("record", "severity"),
    [
        (Record("phase", T, "ACTIVE"), "INFO"),
        (Record("phase", T, "FAILED"), "ERROR"),
        (Record("drop", T, "queue-full", 3.0), "WARNING"),
    ],
)
def test_drops_and_failures_have_a_higher_severity(record: Record, severity: str) -> None:
    assert entry(record)["severity"] == severity


@given(records(), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_any_entry_is_strict_json_with_an_id_of_its_content(record: Record, special: float) -> None:
    first = entry_of(record._replace(value=special), ORIGIN, project="p", region="r")
    assert (first is None) == (record.kind == "heartbeat")
    json.dumps(first, allow_nan=False)
    again = entry_of(record, ORIGIN, project="p", region="r")
    assert again == entry_of(record, ORIGIN, project="p", region="r")
    other = entry_of(record._replace(t=record.t + 1), ORIGIN, project="p", region="r")
    if again is not None and other is not None:
        assert again["insertId"] != other["insertId"]


@given(st.dictionaries(st.sampled_from(["values", "step_index", "unit", "accelerator_labels", "x"]), st.text()))
def test_labels_never_replace_the_values(labels: dict[str, str]) -> None:
    payload = entry(Record("metric", T, "loss", 0.5, step=1, labels=labels, unit="1"))["jsonPayload"]
    assert (payload["values"], payload["step_index"], payload["unit"]) == ([0.5], 1, "1")
    assert len(payload) == 3 + len(labels)
