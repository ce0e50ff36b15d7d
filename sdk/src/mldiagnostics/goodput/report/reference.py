"""Generates docs/reference/goodput-report.md from the docstrings of the fields."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from mldiagnostics.goodput.report import model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD = """# The goodput report

Written by `python -m mldiagnostics.goodput.report.reference`; do not edit.
`python -m mldiagnostics.goodput LOG -o json` prints a report as one line of JSON, and
`mldiagnostics.goodput.report.from_json` reads it back as a `GoodputReport`. Durations end in `_s` and are
seconds, shares are from 0 to 1, times are POSIX seconds; unknown values are null. `v` is the version, 1: keys may be
added, but no key changes its meaning. Definitions and sources: [goodput](../goodput.md#figures).
"""


def reference() -> str:
    """Return the page: the whole report first, then its parts."""
    classes = [node for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef)]
    whole, *parts = sorted(classes, key=lambda node: node.name != "GoodputReport")
    return "\n".join([HEAD, *_lines(whole), *(line for part in parts for line in ("", *_lines(part))), ""])


def _lines(node: ast.ClassDef) -> Iterator[str]:
    yield f"## {node.name}"
    yield ""
    yield ast.get_docstring(node) or ""
    yield ""
    yield "| key | type | |"
    yield "|---|---|---|"
    for place, field in enumerate(node.body):
        if isinstance(field, ast.AnnAssign):
            yield f"| `{ast.unparse(field.target)}` | {_kind(field)} | {_meaning(node.body[place + 1 :])} |"


def _kind(field: ast.AnnAssign) -> str:
    """Return an annotation as a JSON type."""
    kind = ast.unparse(field.annotation).replace(" | ", " or ").replace("None", "null")
    return re.sub(r"tuple\[(\w+), ...\]", r"list of \1", re.sub(r"Mapping\[str, (\w+)\]", r"\1 by name", kind))


def _meaning(following: Sequence[ast.stmt]) -> str:
    """Return the docstring after a field."""
    match following:
        case [ast.Expr(value=ast.Constant(value=str(text))), *_]:
            return " ".join(text.split())
    return ""


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - prints the page
