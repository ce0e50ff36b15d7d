"""`make quick` runs the tests that a change can affect, the nearest first, and stops in time."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.suite.affected import ALWAYS, affected, distances
from support.suite.changes import files
from support.suite.imports import graph, module, names

ROOT = Path(__file__).parents[2]
FILES = [f"f{number}" for number in range(8)]


@cache
def imports() -> dict[str, frozenset[str]]:
    return graph({path: (ROOT / path).read_text() for path in files("*.py") if (ROOT / path).is_file()})


def reached(*changed: str) -> list[str]:
    return affected(changed, imports())


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("tests/sdk/test_errors.py", "tests/sdk/test_errors.py"),
        # imported by the test
        ("sdk/src/mldiagnostics/pipeline/buffer.py", "tests/sdk/pipeline/test_backpressure.py"),
        # imported by a module that the test imports
        ("sdk/src/mldiagnostics/clock.py", "tests/sdk/pipeline/test_backpressure.py"),
        # run as a command, found by its place
        ("cli/src/mldiagnostics_cli/commands/doctor.py", "tests/cli/test_program.py"),
        # a support module, and fixtures
        ("tests/support/suite/picture.py", "tests/layout/test_stages.py"),
        ("tests/operator/conftest.py", "tests/operator/test_main.py"),
        # files that are not Python
        ("view/web/src/page.ts", "tests/view/web/test_runs_page.py"),
        ("charts/mldiagnostics-injection-webhook/values.yaml", "tests/manifests/test_charts.py"),
        ("Makefile", "tests/layout/test_makefile.py"),
    ],
)
def test_a_change_reaches_its_tests(changed: str, test: str) -> None:
    assert test in reached(changed)


def test_the_nearest_tests_come_first_and_far_ones_stay_out() -> None:
    tests = reached("operator/src/mldiagnostics_operator/storage.py", "tests/operator/test_main.py")
    near, far = tests.index("tests/operator/test_storage.py"), tests.index("tests/operator/test_config.py")
    assert tests[0] == "tests/operator/test_main.py"
    assert near < far
    assert not any(path.startswith(("tests/sdk/", "tests/shim/")) for path in tests)
    assert set(ALWAYS) <= set(tests)
    assert reached() == []


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("import a.b", {"a.b"}),
        ("from a import (\n    b,\n    c as d,\n)", {"a.b", "a.c", "a.as", "a.d"}),
        ('command = [sys.executable, "-m", "a", "get"]', {"a", "sys.executable"}),
        ('program = "import a\\nfrom b import c"', {"a", "b.c"}),
        ("if TYPE_CHECKING:\n    from a import b\n\nimport c", {"c"}),
    ],
)
def test_imports_are_read_from_statements_and_texts(text: str, used: set[str]) -> None:
    assert names(text) >= used
    assert "a.b" in used or "a.b" not in names(text)


def test_modules_have_the_names_under_which_they_are_imported() -> None:
    assert module("sdk/src/mldiagnostics/run/__init__.py") == "mldiagnostics.run"
    assert module("e2e/cluster/envtest.py") == "cluster.envtest"
    assert module("tests/support/suite/picture.py") == "support.suite.picture"


def test_a_package_reaches_the_users_of_its_modules_only_if_it_changed_itself() -> None:
    texts = {"sdk/src/a/__init__.py": "import a.b", "sdk/src/a/b.py": "", "tests/test_c.py": "import a.b"}
    assert graph(texts)["tests/test_c.py"] == {"sdk/src/a/b.py"}
    assert graph(texts, ["sdk/src/a/__init__.py"])["tests/test_c.py"] == {"sdk/src/a/__init__.py", "sdk/src/a/b.py"}


@given(st.dictionaries(st.sampled_from(FILES), st.frozensets(st.sampled_from(FILES))), st.sets(st.sampled_from(FILES)))
def test_every_user_of_a_reached_file_is_reached_one_step_later_at_most(
    imports: dict[str, frozenset[str]], changed: set[str]
) -> None:
    steps = distances(changed, imports)
    assert {path for path, step in steps.items() if step == 0} == changed
    for path, used in imports.items():
        nearest = min((steps[each] for each in used if each in steps), default=None)
        if path not in changed:
            assert steps.get(path) == (None if nearest is None else nearest + 1)


def test_tests_that_start_too_late_are_skipped_with_the_reason() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--start-within=0.000001", "tests/layout/test_picture.py"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "MLDIAG_REQUIRE_ALL"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "not reached in the time of `make quick`; run `make unit`" in done.stdout
    assert "1 passed, " in done.stdout
