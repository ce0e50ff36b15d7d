"""The OpenAPI document of the control-plane API, made of its models."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any, Final

from mldiagnostics_api.injection.control_plane import AUDIENCE
from mldiagnostics_api.manifests.field_docs import DocumentedSchema
from mldiagnostics_api.reports.models import RUN_ID_PATTERN, Answer, Problem, Report
from pydantic.json_schema import models_json_schema

_REF: Final = "#/components/schemas/{model}"
_JSON: Final = "application/json"
_PROBLEMS: Final = {
    400: "The body is not gzip or JSON, or is nested too deep; send another one.",
    401: "The token is missing or not valid; try again later.",
    403: "The run belongs to another workload or account; try again later.",
    404: "There is no such path, or the run id is not valid.",
    405: "The method is not POST.",
    408: "The body did not arrive in time; send it again.",
    413: "The body is too large; send fewer events at a time.",
    415: "The body is not JSON, or in another encoding than gzip.",
    422: "The body is not a report; the message names the fields.",
    429: "This client sends too many reports; try again after `Retry-After`.",
    503: "The control plane, its storage or the API server cannot do this now; try again after `Retry-After`.",
}
_RETRIED: Final = frozenset({429, 503})


def document() -> dict[str, Any]:
    """Return the document."""
    _, schemas = models_json_schema(
        [(Report, "validation"), (Answer, "serialization"), (Problem, "serialization")],
        ref_template=_REF,
        schema_generator=DocumentedSchema,
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mldiagnostics control plane",
            "version": version("mldiagnostics-operator"),
            "description": "SDKs report runs here, over HTTPS. Unknown keys are ignored; null is an unknown value.",
        },
        "paths": {"/v1/runs/{runId}/reports": {"post": _report()}},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"Projected service-account token with the audience `{AUDIENCE}`.",
                }
            },
        },
    }


def _report() -> dict[str, Any]:
    return {
        "operationId": "report",
        "summary": "Report the state of one process of a run",
        "security": [{"token": []}],
        "parameters": [
            {
                "name": "runId",
                "in": "path",
                "required": True,
                "description": "Id of the run. A pod may write only the run of its workload.",
                "schema": {"type": "string", "pattern": RUN_ID_PATTERN},
            },
            {
                "name": "Content-Encoding",
                "in": "header",
                "description": "Encoding of the body; none if absent.",
                "schema": {"type": "string", "enum": ["gzip", "identity"]},
            },
        ],
        "requestBody": {"required": True, "content": _content("Report")},
        "responses": {
            "200": {"description": "The report is applied.", "content": _content("Answer")},
            **{str(status): _problem(status, meaning) for status, meaning in _PROBLEMS.items()},
        },
    }


def _problem(status: int, meaning: str) -> dict[str, Any]:
    response: dict[str, Any] = {"description": meaning, "content": _content("Problem")}
    if status in _RETRIED:
        response["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
        }
    return response


def _content(model: str) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": _REF.format(model=model)}}}


def reference() -> str:
    """Return the document as JSON text."""
    return json.dumps(document(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(reference())
