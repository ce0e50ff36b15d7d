from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from mldiagnostics_api.manifests.definition import DEFINITIONS
from mldiagnostics_api.manifests.field_docs import DocumentedSchema, field_docstrings
from mldiagnostics_api.v1alpha1.shared import Model
from pydantic import BaseModel, Field
from support.suite.isolation import of_programs


class Documented(Model):
    """A model with a field of each kind."""

    host_name: str
    """Name of the host,
    as in XProf."""
    part: Documented | None = None
    """Described at the field."""
    plain: int = 0

    @property
    def seconds(self) -> float:
        """Not a field."""
        return 0.0


class DocumentedMore(Documented):
    """A model that inherits fields."""

    plain: int = Field(default=1)
    """Described again."""


class DocumentedElsewhere(BaseModel):
    """A model that is not of the API."""

    name: str
    """Not a description."""


def properties(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=DocumentedSchema)
    schema = schema["$defs"][model.__name__] if "$ref" in schema else schema
    return {name: property_.get("description") for name, property_ in schema["properties"].items()}


def test_fields_are_described_by_the_docstrings_below_them() -> None:
    assert properties(Documented) == {
        "hostName": "Name of the host,\nas in XProf.",
        "part": "Described at the field.",
        "plain": None,
    }


def test_inherited_fields_are_described_too() -> None:
    assert properties(DocumentedMore) == properties(Documented) | {"plain": "Described again."}


def test_models_that_are_not_of_the_api_are_not_described() -> None:
    assert properties(DocumentedElsewhere) == {"name": None}


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.resource.kind)
def test_the_parts_of_an_object_have_docstrings(definition: Any) -> None:
    assert {"spec", "status"} <= field_docstrings(definition.model).keys()


def test_an_import_of_the_models_parses_no_source() -> None:
    program = "import sys, ast; ast.parse = None; import mldiagnostics_api.v1alpha1; print('ready')"
    done = subprocess.run(
        [sys.executable, "-c", program], env=of_programs(), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("ready\n", "")
