"""The prose check finds forbidden patterns and leaves plain English alone."""

from __future__ import annotations

import pytest
from layout.prose import PRODUCT, REPOSITORY, check_document, check_python, check_text, files


@pytest.mark.parametrize(
    "text",
    [
        "the text is no absolute path", "labels are bounded, names are none", "Targets that were contacted in vain",
        "A value that is told once", "the pod believes the variable", "the server was asked", "Whoever reads, waits.",
        "the size of what was written", "What comes behind it is ignored.", "Done. What is left is dropped.",
        "--to: not a path; give one",
    ],
)  # fmt: skip
def test_forbidden_prose_is_found(text: str) -> None:
    assert list(check_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "`log_dir`: 'x' is not an absolute path; pass one that starts with /", "there is no such pod",
        "What is stored?", "it is no longer used", "sink otlp: rejected 12 records", "`is no` is forbidden",
    ],
)  # fmt: skip
def test_plain_prose_passes(text: str) -> None:
    assert not list(check_text(text))


def test_code_blocks_of_a_document_are_not_prose() -> None:
    assert not list(check_document("Run it:\n\n```sh\necho whoever\n```\n"))
    (finding,) = check_document("Run it:\n\n```sh\necho\n```\n\nwhoever\n")
    assert (finding.line, finding.text) == (7, "whoever")


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    '''The path.'''", "def f():\n    '''Returns the path.'''", "def f():\n    '''Whether it is.'''",
        f"'''{'x ' * 41}'''", "class A:\n    n: int\n    '''How many there are.'''", "told = 1",
        "def was_asked(): ...", "found = 1", "raise ValueError('x is no path')",
        "raise ValueError(f'{x} is no path')", "pass  # in vain",
    ],
)  # fmt: skip
def test_forbidden_code_is_found(source: str) -> None:
    assert list(check_python(source, first_lines=True, private_locals=True))


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    '''Return the path.'''", "class A:\n    @property\n    def f(self):\n        '''The path.'''",
        "class A:\n    n: int\n    '''Number of pods.'''", "found_pods = 1", "raise ValueError('x: not a path')",
    ],
)  # fmt: skip
def test_plain_code_passes(source: str) -> None:
    findings = list(check_python(source, first_lines=True, private_locals=True))
    assert not findings


def test_every_member_and_document_is_checked() -> None:
    names = {path.as_posix() for path in files()}
    for ending in (
        "README.md",
        "charts/mldiagnostics-connection-operator/values.yaml",
        "sdk/src/mldiagnostics/run/mlrun.py",
    ):
        assert any(name.endswith(f"/{ending}") for name in names), ending


def test_the_first_lines_of_every_member_are_checked() -> None:
    members = {path.parent.name for path in REPOSITORY.glob("*/pyproject.toml")}
    assert {f"{member}/src/" for member in members} == set(PRODUCT)
