"""The reference page of a CustomResourceDefinition, made from its schema."""

from collections.abc import Iterator
from typing import Any


def reference_page(definition: dict[str, Any]) -> str:
    """Return a Markdown page with every field of spec and status."""
    version = definition["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    lines = [
        f"# {definition['spec']['names']['kind']} ({definition['spec']['group']}/{version['name']})",
        "",
        "Written by `make manifests` from the models; do not edit. `kubectl explain` shows the same.",
        "",
        schema["description"],
    ]
    for part in ("spec", "status"):
        lines += ["", f"## {part}", "", "| field | type | meaning |", "|---|---|---|"]
        lines += [f"| `{path}` | {_type(field)} | {_meaning(field)} |" for path, field in _fields(schema, part)]
        lines += [f"\nRule: {rule}." for rule in _rules(schema["properties"][part])]
    return "\n".join(lines) + "\n"


def _fields(schema: dict[str, Any], name: str, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    field = schema["properties"][name]
    here = f"{path}.{name}" if path else name
    yield here, field
    suffix = "[]" if field.get("type") == "array" else ""
    inner = field.get("items", field)
    for child in inner.get("properties", ()):
        yield from _fields(inner, child, here + suffix)


def _type(field: dict[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    bounds = [f"{sign} {field[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in field]
    kind: str = "date-time" if field.get("format") == "date-time" else field["type"]
    return " ".join([kind, ", ".join(bounds)]).strip()


def _meaning(field: dict[str, Any]) -> str:
    return " ".join(field["description"].split()).replace("|", "\\|")


def _rules(schema: dict[str, Any]) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield rule["message"]
    for child in schema.get("properties", {}).values():
        yield from _rules(child)
