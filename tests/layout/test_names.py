"""One word, one meaning: class names stand for one thing, and names of tests stand alone."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Several frameworks ask for a class of this name, and programs import it from the module of theirs.
BY_FRAMEWORK = {"MLDiagnosticsCallback", "MLDiagnosticsLogger"}
# Google's SDK and ml-goodput-measurement each have one; both keep the name under which programs import it.
BY_PEERS = {"LogEntry", "LoggingClient", "MetricPoint", "MetricType"}


def test_a_class_name_is_unique() -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.glob("*/src/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(path.relative_to(ROOT)))
    assert len(modules) > 300
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert shared.keys() == BY_FRAMEWORK | BY_PEERS, shared


def test_the_name_of_a_test_does_not_need_the_test_before() -> None:
    pattern = re.compile(r"def (test_(?:it|its|they|them|their|nor|and|but|so)_\w+)")
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("e2e/**/test_*.py")]
    dependent = {path.name: pattern.findall(path.read_text("utf-8")) for path in sorted(files)}
    assert {name: tests for name, tests in dependent.items() if tests} == {}
