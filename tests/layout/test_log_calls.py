"""Log lines of the processes in a cluster have fields."""

from __future__ import annotations

import ast

import pytest
from layout.prose import REPOSITORY

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


@pytest.mark.parametrize("member", ["kube", "operator", "webhook", "view"])
def test_the_values_of_a_message_are_named(member: str) -> None:
    calls = [
        (path.name, call)
        for path in (REPOSITORY / member / "src").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {f"_log.{level}" for level in LEVELS}
    ]
    assert calls
    unnamed = [
        f"{name}:{call.lineno}"
        for name, call in calls
        if len(call.args) > 2 or (len(call.args) == 2 and not isinstance(call.args[1], ast.Dict))
    ]
    assert not unnamed, "name the values: log.warning('Lease %(lease)s: lost', {'lease': name})"
