"""JSON Schema of models whose fields are described by the docstrings below them."""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import override

from mldiagnostics_api.v1alpha1.shared import Model


class DocumentedSchema(GenerateJsonSchema):
    """A generator that describes fields of `Model` by their docstrings.

    Pydantic itself reads them when a class is made, which doubles the time to import the models, in every process.
    """

    @override
    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a model, with descriptions."""
        json_schema = super().model_schema(schema)
        model = schema["cls"]
        if issubclass(model, Model):
            for name, docstring in field_docstrings(model).items():
                json_schema["properties"][model.model_fields[name].alias or name]["description"] = docstring
        return json_schema


def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of all fields of a model, by name."""
    docstrings: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, Model):
            docstrings |= _own_docstrings(cls)
    return docstrings


@cache
def _own_docstrings(model: type[BaseModel]) -> dict[str, str]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    body = node.body if isinstance(node, ast.ClassDef) else []
    docstrings = {}
    for field, following in pairwise(body):
        match field, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docstrings[name] = inspect.cleandoc(text)
    return docstrings
