"""Log lines of the processes in a cluster have fields."""

from __future__ import annotations

import ast

import pytest
from layout.prose import REPOSITORY

METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def has_names(call: ast.Call) -> bool:
    """Return whether a call has no values, or a dictionary of them: a literal, or a local with the name `fields`."""
    is_log = ast.unparse(call.func).endswith(".log")  # whose first argument is the level
    match call.args[1 + is_log :]:
        case [] | [ast.Dict()] | [ast.Name("fields")]:
            return True
    return False


@pytest.mark.parametrize("member", ["kube", "operator", "webhook", "view"])
def test_the_values_of_a_message_are_named(member: str) -> None:
    calls = [
        (path.name, call)
        for path in (REPOSITORY / member / "src").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {f"_log.{method}" for method in METHODS}
    ]
    assert calls
    unnamed = [f"{name}:{call.lineno}" for name, call in calls if not has_names(call)]
    assert not unnamed, "name the values: log.warning('Lease %(lease)s: lost', {'lease': name})"
