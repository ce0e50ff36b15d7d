from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mldiagnostics_api.manifests.definition import DEFINITIONS, definition_of
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_api.v1alpha1 import (
    CaptureResult,
    ConnectionSpec,
    ConnectionStatus,
    MLRunSpec,
    MLRunStatus,
    StatusCondition,
    TargetCounts,
    TargetResult,
    read_connection,
)
from pydantic import BaseModel, ValidationError
from support.cluster import builders as a

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFINITION = definition_of(CONNECTIONS)
VERSION = DEFINITION["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
RUN_VERSION = definition_of(RUNS)["spec"]["versions"][0]
RUN_SCHEMA = RUN_VERSION["schema"]["openAPIV3Schema"]
SCHEMAS = pytest.mark.parametrize("schema", [SCHEMA, RUN_SCHEMA], ids=["MLDiagnosticsConnection", "MLRun"])
FORBIDDEN = {"$ref", "$defs", "title", "oneOf", "allOf", "not", "const", "exclusiveMinimum", "additionalItems"}


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from fields(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from fields(schema[key], f"{path}[]")


@SCHEMAS
def test_every_field_is_described_and_typed(schema: dict[str, Any]) -> None:
    named = [(path, field) for path, field in fields(schema) if path and not path.endswith("[]")]
    assert len(named) > 70
    assert [path for path, field in named if not field.get("description") and path != ".metadata"] == []
    for path, field in named:
        assert "type" in field or field.get("x-kubernetes-int-or-string"), path


@SCHEMAS
def test_the_schema_is_structural(schema: dict[str, Any]) -> None:
    for path, field in fields(schema):
        assert not FORBIDDEN.intersection(field), path
        if "anyOf" in field:
            assert field["x-kubernetes-int-or-string"], path
        assert field.get("additionalProperties") is not False, path


def test_every_list_and_text_of_a_run_is_bounded() -> None:
    """Else a tenant or a report could make an object that etcd rejects."""
    free = {".status.conditions", ".status.conditions[].lastTransitionTime"}
    for path, field in fields(RUN_SCHEMA):
        if path.startswith((".spec", ".status")) and path not in free and field.get("format") != "date-time":
            bounds = {"array": "maxItems", "string": "maxLength"}
            if "additionalProperties" in field:
                assert "maxProperties" in field, path
            elif field.get("type") in bounds and "enum" not in field:
                assert bounds[field["type"]] in field, path


def test_only_the_profiler_has_a_default() -> None:
    assert [path for path, field in fields(SCHEMA) if "default" in field] == [".spec.triggerCapture.profiler"]
    assert [path for path, field in fields(RUN_SCHEMA) if "default" in field] == []


@pytest.mark.parametrize(
    ("version", "columns"),
    [
        (VERSION, ["Status", "Progress", "Session", "Diagnosis", "Age"]),
        (RUN_VERSION, ["Phase", "Attempt", "Hosts", "Step", "Step Time", "Goodput", "Age"]),
    ],
    ids=["MLDiagnosticsConnection", "MLRun"],
)
def test_columns_and_selectable_fields_refer_to_fields(version: dict[str, Any], columns: list[str]) -> None:
    known = dict(fields(version["schema"]["openAPIV3Schema"]))
    paths = [column["jsonPath"] for column in version["additionalPrinterColumns"]]
    paths += [field["jsonPath"] for field in version["selectableFields"]]
    assert set(paths) - set(known) == {".metadata.creationTimestamp"}
    assert [column["name"] for column in version["additionalPrinterColumns"] if "priority" not in column] == columns


def test_every_resource_has_a_definition_with_names_of_its_own() -> None:
    specs = [definition.manifest()["spec"] for definition in DEFINITIONS]
    names = [name for spec in specs for name in (spec["names"]["plural"], *spec["names"]["shortNames"])]
    assert len(set(names)) == len(names) == 6


def test_the_peers_schema_is_a_part_of_ours() -> None:
    trigger = SCHEMA["properties"]["spec"]["properties"]["triggerCapture"]["properties"]
    assert {"podName", "podNamespace", "capturePort", "durationSeconds", "profiler", "storageLocation"} <= set(trigger)
    assert trigger["profiler"]["enum"] == ["google_cloud_mldiagnostics"]
    status = SCHEMA["properties"]["status"]["properties"]
    assert {"phase", "message", "startTime", "completionTime", "captureResult"} <= set(status)
    assert set(status["phase"]["enum"]) == {"Pending", "Running", "Succeeded", "Failed"}
    assert set(status["captureResult"]["properties"]) == {"status", "errorMessage", "outputLocation"}


def generated(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of values that a structural schema allows."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.one_of(st.integers(schema["minimum"], 100), st.from_regex(schema["pattern"], fullmatch=True))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "object" if "additionalProperties" in schema:
            keys = st.from_regex(r"[a-z]{1,9}", fullmatch=True)
            return st.dictionaries(keys, generated(schema["additionalProperties"]), max_size=2)
        case "object":
            properties = {name: generated(child) for name, child in schema.get("properties", {}).items()}
            required = {name: properties.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(required, optional=properties)
        case "array":
            return st.lists(generated(schema["items"]), max_size=2)
        case "string" if schema.get("format") == "date-time":
            return st.sampled_from(["2026-11-21T03:04:05Z", "2026-11-21T03:04:05.123456Z"])
        case "string" if "pattern" in schema:
            short = schema["pattern"].replace("{1,9}", "{1,2}")
            return st.from_regex(short, fullmatch=True).filter(
                lambda text: schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 10**6)
            )
        case "string":
            return st.text(min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 9), 9))
        case "integer":
            return st.integers(schema.get("minimum", 0), min(schema.get("maximum", 10**6), 10**6))
        case other:
            return (
                st.booleans() if other == "boolean" else st.floats(schema.get("minimum", 0), schema.get("maximum", 1e6))
            )


def check_round_trip(model: type[BaseModel], schema: dict[str, Any], value: Any) -> None:
    """Check that the model parses a value that the schema allows, and writes it back without a loss."""
    jsonschema.validate(value, schema)
    written = model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_none=True)
    jsonschema.validate(written, schema)
    if "triggerCapture" in value:
        value["triggerCapture"].setdefault("profiler", "google_cloud_mldiagnostics")
    assert written == value


@given(generated(SCHEMA["properties"]["spec"]))
def test_schema_and_model_of_the_spec_agree(value: dict[str, Any]) -> None:
    check_round_trip(ConnectionSpec, SCHEMA["properties"]["spec"], value)


@given(generated(SCHEMA["properties"]["status"]))
def test_schema_and_model_of_the_status_agree(value: dict[str, Any]) -> None:
    check_round_trip(ConnectionStatus, SCHEMA["properties"]["status"], value)


@given(generated(RUN_SCHEMA["properties"]["spec"]))
@settings(max_examples=30)
def test_schema_and_model_of_a_runs_spec_agree(value: dict[str, Any]) -> None:
    check_round_trip(MLRunSpec, RUN_SCHEMA["properties"]["spec"], value)


@given(generated(RUN_SCHEMA["properties"]["status"]))
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_schema_and_model_of_a_runs_status_agree(value: dict[str, Any]) -> None:
    check_round_trip(MLRunStatus, RUN_SCHEMA["properties"]["status"], value)


@given(
    st.sampled_from(["capturePort", "durationSeconds", "startLeadMilliseconds", "deadlineSeconds", "minimumCaptured"]),
    st.integers(-10, 10**6),
)
def test_schema_and_model_reject_the_same_numbers(field: str, number: int) -> None:
    body = a.connection(podName="a", **{field: number})
    try:
        jsonschema.validate(body["spec"], SCHEMA["properties"]["spec"])
        allowed = True
    except jsonschema.ValidationError:
        allowed = False
    if allowed:
        read_connection(body)
    else:
        with pytest.raises(ValueError, match=field):
            read_connection(body)


@pytest.mark.parametrize(
    "model", [ConnectionStatus, TargetResult, StatusCondition, TargetCounts, CaptureResult], ids=lambda m: m.__name__
)
def test_no_field_of_the_status_is_pruned(model: type[BaseModel]) -> None:
    status = SCHEMA["properties"]["status"]
    known = {path.rpartition(".")[2] for path, _ in fields(status)}
    assert {field.alias for field in model.model_fields.values()} <= known
    with pytest.raises(ValidationError):
        model.model_validate("text")
