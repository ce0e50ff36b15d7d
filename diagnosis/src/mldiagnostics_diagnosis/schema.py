"""Generates the JSON Schema of diagnosis.json.

Run `python -m mldiagnostics_diagnosis.schema`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mldiagnostics.findings import MAX_EVIDENCE, MAX_FINDINGS, MAX_HOSTS, MAX_NUMBER, MAX_TEXT, SEVERITIES, VERSION

Schema = dict[str, Any]


def schema() -> Schema:
    """Return the schema of the version that this package writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"diagnosis.json, version {VERSION}",
        "description": (
            "Written by `python -m mldiagnostics_diagnosis.schema`; do not edit. The findings about one session: a "
            "file beside its traces, and the output of `mldiag diagnose -o json`. A reader ignores other versions."
        ),
        **_object(
            {
                "v": {"const": VERSION, "description": "Version of the file."},
                "session": _text("XProf session."),
                "hosts": _count("Hosts with a summary."),
                "steps": _count("Steps that all of these hosts have."),
                "stepSeconds": _optional(_amount("Median time of a step; null without steps.")),
                "findings": _list(_finding(), MAX_FINDINGS, "At least one; the most expensive one first.", least=1),
            }
        ),
    }


def _finding() -> Schema:
    return _object(
        {
            "code": _text("Name of the rule, such as `SlowHost`; see diagnosis-rules.md."),
            "severity": {
                "enum": list(SEVERITIES),
                "description": "critical from a fifth of the step, warning from a tenth, info else.",
            },
            "message": _text("One sentence with hosts, phase and numbers."),
            "nextStep": _text("One sentence with the action to take."),
            "hosts": _list(_host(), MAX_HOSTS, "The first hosts that it is about; none if it is about all."),
            "hostCount": _count("Hosts that it is about."),
            "phase": _optional(_text("Phase of the step that takes the time, such as `input`.")),
            "operation": _optional(_text("Operation in that phase.")),
            "costSeconds": _amount("Seconds of each step that the job loses by it."),
            "costShare": _amount("The same as a share of the step, 0 to 1."),
            "evidence": _list(_figure(), MAX_EVIDENCE, "Numbers behind the finding."),
        }
    )


def _host() -> Schema:
    return _object(
        {
            "name": _text("Name of the trace file, as in XProf."),
            "rank": _optional(_count("Position of the process in its job.")),
            "pod": _optional(_text("Name of the pod.")),
            "node": _optional(_text("Node of the pod.")),
        }
    )


def _figure() -> Schema:
    return _object(
        {
            "name": _text("Quantity that was measured."),
            "value": {"type": "number", "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER},
            "unit": _text("`s`, `share` (0 to 1), `steps`, `hosts`, `bytes`, or empty for a bare number."),
        }
    )


def _object(properties: Schema) -> Schema:
    """Return an object whose fields are all required, and that has no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema, most: int, description: str, *, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most, "description": description}


def _text(description: str) -> Schema:
    return {"type": "string", "maxLength": MAX_TEXT, "description": description}


def _count(description: str) -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": int(MAX_NUMBER), "description": description}


def _amount(description: str) -> Schema:
    return {"type": "number", "minimum": 0, "maximum": MAX_NUMBER, "description": description}


def _optional(value: Schema) -> Schema:
    return {**value, "type": [value["type"], "null"]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
