from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from mldiagnostics_api.manifests.structural import structural_schema
from pydantic import BaseModel, Field


class Inner(BaseModel):
    """The inner part."""

    name: str


def test_references_are_inlined_and_null_disappears() -> None:
    class Outer(BaseModel):
        first: Inner
        second: Annotated[Inner | None, Field(description="Maybe.")] = None
        many: list[Inner] | None = None
        labels: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)

    inner = {
        "description": "The inner part.",
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    }
    assert structural_schema(Outer) == {
        "type": "object",
        "required": ["first"],
        "properties": {
            "first": inner,
            "second": inner | {"description": "Maybe."},
            "many": {"type": "array", "items": inner},
            "labels": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        },
    }


def test_a_constant_becomes_an_enumeration_and_keeps_its_default() -> None:
    class Model(BaseModel):
        kind: Literal["only"] = "only"

    assert structural_schema(Model)["properties"]["kind"] == {"type": "string", "enum": ["only"], "default": "only"}


def test_int_or_string_is_the_one_union_with_the_bounds_of_both() -> None:
    class Model(BaseModel):
        value: Annotated[
            Annotated[int, Field(ge=1)] | Annotated[str, Field(pattern="^a$")],
            Field(json_schema_extra={"x-kubernetes-int-or-string": True}),
        ]

    assert structural_schema(Model)["properties"]["value"] == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "minimum": 1,
        "pattern": "^a$",
        "x-kubernetes-int-or-string": True,
    }


def model_with(annotation: Any) -> type[BaseModel]:
    class Model(BaseModel):
        __annotations__ = {"value": annotation}  # made for the test

    return Model


@pytest.mark.parametrize(
    "annotation",
    [
        int | str,
        tuple[int, str],
        Annotated[int, Field(gt=0)],
        Annotated[int, Field(multiple_of=2)],
        Any,
        Annotated[float | str, Field(json_schema_extra={"x-kubernetes-int-or-string": True})],
    ],
)
def test_unsupported_keywords_are_rejected_with_their_path(annotation: Any) -> None:
    with pytest.raises(ValueError, match=r"^Model\.value"):
        structural_schema(model_with(annotation))
