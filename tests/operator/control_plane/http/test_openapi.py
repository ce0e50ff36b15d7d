from __future__ import annotations

import json
from asyncio import to_thread
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mldiagnostics_api.reports.models import Answer, Problem
from mldiagnostics_operator.control_plane.http.openapi import document
from schemathesis import checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.cluster.control_planes import Running

PATH = "/v1/runs/{runId}/reports"
CHECKS = [
    checks.not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


def test_the_document_names_every_field_with_its_meaning() -> None:
    schemas = document()["components"]["schemas"]
    for name, schema in schemas.items():
        assert schema["description"], name
        for field, value in schema["properties"].items():
            assert value.get("description"), f"{name}.{field}"
    assert {"worldSize", "stepTimeSeconds", "podUid"} <= {
        field for schema in schemas.values() for field in schema["properties"]
    }


def test_answers_match_the_document() -> None:
    schemas = {"components": document()["components"]}
    for model in (Answer(persisted_sequence=1, persisted_events=2), Problem(error="x")):
        schema = {"$ref": f"#/components/schemas/{type(model).__name__}", **schemas}
        jsonschema.validate(json.loads(model.model_dump_json(by_alias=True)), schema)


@pytest.mark.apiserver
async def test_no_request_that_the_document_allows_surprises_the_server(plane: Running, tmp_path: Path) -> None:
    client = await plane.reporter()
    await to_thread(fuzz, client.url, client.token, client.run, str(tmp_path / "pki/ca.crt"))


def fuzz(url: str, token: str, run: str, ca: str) -> None:
    """Send requests that the document describes, and some that it does not."""
    operation = schemathesis.openapi.from_dict(document())[PATH]["POST"]
    headers = {"Authorization": f"Bearer {token}"}
    modes = [operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode]

    @given(case=st.one_of(modes), own=st.booleans())
    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def check(case: Any, own: bool) -> None:
        if own:
            case.path_parameters["runId"] = run
        response = case.call(base_url=url, headers=headers, verify=ca)
        case.validate_response(response, checks=CHECKS)

    check()
