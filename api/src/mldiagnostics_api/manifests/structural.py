"""Conversion of pydantic's JSON Schema to a structural schema of Kubernetes."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from mldiagnostics_api.manifests.field_docs import DocumentedSchema

Schema = dict[str, Any]

_KEPT: Final = (
    "type",
    "format",
    "description",
    "default",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
)
_FIRST: Final = ("description", "type", "format", "required")
_DROPPED: Final = ("title", "$defs")
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return the model's structural schema.

    References are inlined, nullability is removed, and int-or-string is the only union.

    Raises:
        ValueError: The model has a keyword that is not supported.
    """
    schema = model.model_json_schema(by_alias=True, schema_generator=DocumentedSchema)
    return _transform(schema, schema.get("$defs", {}), model.__name__)


def _transform(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    schema = _inlined(schema, definitions)
    structural: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            structural[key] = {
                name: _transform(property_, definitions, f"{path}.{name}") for name, property_ in value.items()
            }
        elif key in ("items", "additionalProperties"):
            structural[key] = _transform(value, definitions, f"{path}[]")
        elif key == "const":
            structural["enum"] = [value]
        elif key == "anyOf" and schema.get(_INT_OR_STRING):
            structural |= _int_or_string(value, path)
        elif (key in _KEPT or key.startswith("x-kubernetes-")) and value is not None:
            structural[key] = value
        elif key not in _DROPPED and value is not None:
            raise ValueError(f"{path}: a structural schema does not support {key}: {value!r}")
    if "type" not in structural and _INT_OR_STRING not in structural:
        raise ValueError(f"{path}: no type")
    if "description" in structural:
        structural["description"] = " ".join(structural["description"].split())
    return {key: structural[key] for key in sorted(structural, key=_rank)}


def _rank(key: str) -> int:
    return _FIRST.index(key) if key in _FIRST else len(_FIRST)


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Resolve a reference or a union with null; keys beside it win."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return _inlined({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return _inlined({**choices[0], **{key: v for key, v in schema.items() if key != "anyOf"}}, definitions)
    return dict(schema)


def _int_or_string(choices: list[Schema], path: str) -> Schema:
    """Keep the bounds of both types; Kubernetes applies those of the actual type."""
    if [choice["type"] for choice in choices] != ["integer", "string"]:
        raise ValueError(f"{path}: {_INT_OR_STRING} needs exactly integer and string")
    bounds = {key: value for choice in choices for key, value in choice.items() if key in _KEPT and key != "type"}
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], **bounds}
