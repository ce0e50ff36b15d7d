"""The garbage collector is off while tests are collected, and on while they run."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_garbage_of_tests_is_collected() -> None:
    assert gc.isenabled()
    assert gc.get_threshold()[0] > 0
    assert gc.get_freeze_count() > 10_000


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["in one process", "in a worker"])
def test_the_collector_is_off_until_the_first_test(options: tuple[str, ...], tmp_path: Path) -> None:
    lines = ("import gc", "BEFORE = gc.isenabled()", "def test_it(): assert (BEFORE, gc.isenabled()) == (False, True)")
    (tmp_path / "test_it.py").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join(str(ROOT / each) for each in ("tests", "e2e"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q", *options, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
