"""`--marked` reads the test files of a stage alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_STAGE = "import pytest\n\n\n@pytest.mark.apiserver\ndef test_of_stage():\n    pass\n"
HIDDEN = "import pytest\n\npytestmark = getattr(pytest.mark, 'api' + 'server')\n\n\ndef test_hidden():\n    pass\n"


def collected(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "--collect-only", "-q"]
    path = os.pathsep.join(str(ROOT / each) for each in ("tests", "e2e"))
    return subprocess.run(
        [*command, *options, str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_file_without_the_mark_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "test_of_stage.py").write_text(OF_STAGE)
    (tmp_path / "test_other.py").write_text("raise RuntimeError('imported')\n")
    done = collected(tmp_path, "--marked=apiserver", "-m", "apiserver")
    assert done.returncode == 0, done.stdout
    assert "1 test collected" in done.stdout


def test_a_mark_that_does_not_stand_in_the_file_of_its_test_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_hidden.py").write_text(HIDDEN)
    done = collected(tmp_path)
    assert done.returncode == 4, done.stdout
    assert "test_hidden: `mark.apiserver` does not stand in its file; write it there" in done.stdout + done.stderr
