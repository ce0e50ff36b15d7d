"""Generates docs/reference/goodput-report.md from the docstrings of the fields."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from mldiagnostics.goodput.report import model
from mldiagnostics.goodput.report.jsonable import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

HEAD = """# The goodput report

Written by `python -m mldiagnostics.goodput.report.reference`; do not edit.
`python -m mldiagnostics.goodput LOG -o json` prints a report as one line of JSON, and
`mldiagnostics.goodput.report.from_json` reads it back as a `GoodputReport`. Keys are in the style of
`mldiag runs -o json` and of Kubernetes objects: durations end in `Seconds`, times end in `Time` and are RFC 3339 in
UTC, shares are from 0 to 1; unknown values are null. Definitions and sources: [goodput](../goodput.md#figures).

`v` is the version, 1: keys may be added, but no key changes its meaning. It also has each key under the name that it
had before, with times in POSIX seconds, in the last column; version 2 has them no longer.
"""


def reference() -> str:
    """Return the page: the whole report first, then its parts."""
    classes = [node for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef)]
    whole, *parts = sorted(classes, key=lambda node: node.name != "GoodputReport")
    names = {ast.unparse(field.target) for node in classes for field in node.body if isinstance(field, ast.AnnAssign)}
    rest = (line for part in parts for line in ("", *_lines(part, names)))
    return "\n".join([HEAD, *_lines(whole, names), *rest, ""])


def _lines(node: ast.ClassDef, names: AbstractSet[str]) -> Iterator[str]:
    yield f"## {node.name}"
    yield ""
    yield ast.get_docstring(node) or ""
    yield ""
    yield "| key | type | | before |"
    yield "|---|---|---|---|"
    for index, field in enumerate(node.body):
        if isinstance(field, ast.AnnAssign):
            name = ast.unparse(field.target)
            key, meaning = key_of(name), _meaning(node.body[index + 1 :], names)
            kind = _kind(field).replace("float", "string") if key.endswith("Time") else _kind(field)
            yield f"| `{key}` | {kind} | {meaning} | {f'`{name}`' if key != name else ''} |"


def _kind(field: ast.AnnAssign) -> str:
    """Return an annotation as a JSON type."""
    kind = ast.unparse(field.annotation).replace(" | ", " or ").replace("None", "null")
    return re.sub(r"tuple\[(\w+), ...\]", r"list of \1", re.sub(r"Mapping\[str, (\w+)\]", r"\1 by name", kind))


def _meaning(following: Sequence[ast.stmt], names: AbstractSet[str]) -> str:
    """Return the docstring after a field, with the keys of the fields that it names."""
    match following:
        case [ast.Expr(value=ast.Constant(value=str(text))), *_]:
            return re.sub(
                r"`(\w+)`", lambda name: f"`{key_of(name[1]) if name[1] in names else name[1]}`", " ".join(text.split())
            )
    return ""


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - prints the page
