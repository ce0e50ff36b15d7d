"""The hierarchy of errors."""

from __future__ import annotations

import inspect
import re

import pytest
from mldiagnostics import errors

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value)]


def test_everything_is_caught_by_the_root() -> None:
    assert all(issubclass(kind, errors.MLDiagnosticsError) for kind in CLASSES)


def test_the_tree_drawn_on_top_is_the_tree() -> None:
    assert errors.__doc__
    drawn: dict[str, str] = {}
    path: list[str] = []
    tree = errors.__doc__.split("\n\n", 1)[1]
    for indent, name in re.findall(r"^([ │├└─]*)(\w+)", tree, re.MULTILINE):
        path[len(indent) // 4 :] = [name]
        drawn[name] = path[-2] if len(path) > 1 else "Exception"
    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


@pytest.mark.parametrize(
    ("kind", "builtin"), [(errors.ConfigurationError, ValueError), (errors.MissingExtraError, ImportError)]
)
def test_errors_are_also_python_errors(kind: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(kind, builtin)


def test_a_missing_extra_names_the_install_command() -> None:
    error = errors.MissingExtraError(extra="gcs", needed_for="gs://bucket")
    assert error.extra == "gcs"
    assert "gs://bucket" in str(error)
    assert "pip install './sdk[gcs]'" in str(error)
