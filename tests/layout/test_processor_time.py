"""The report of a run has the processor's time of each file, from all of its processes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BURN = "import os\nwhile sum(os.times()[:2]) < {seconds}: pass"
BURNS = f"""
import subprocess
import sys

import pytest


@pytest.fixture(autouse=True, scope="session")
def server():
    yield
    subprocess.run([sys.executable, "-c", {BURN.format(seconds=1.5)!r}], check=True)


def test_of_a_program():
    subprocess.run([sys.executable, "-c", {BURN.format(seconds=0.5)!r}], check=True)
"""
RESTS = "import time\n\n\ndef test_that_waits():\n    time.sleep(0.6)\n"


@pytest.mark.parametrize("processes", ["0", "2"])
def test_programs_of_tests_count_and_neither_waits_nor_servers_of_a_session_do(tmp_path: Path, processes: str) -> None:
    (tmp_path / "conftest.py").write_text(
        "from support.suite.processor_time import ProcessorTime\n\n\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(ProcessorTime())\n"
    )
    (tmp_path / "test_burns.py").write_text(BURNS)
    (tmp_path / "test_rests.py").write_text(RESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", processes, "-p", "no:randomly", "--rootdir=.", "."]
    environment = {"PYTHONPATH": str(ROOT / "tests"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    burnt, rested = (
        float(re.search(rf"^([\d.]+)s processor {file}$", done.stdout, re.MULTILINE)[1])  # type: ignore[index]
        for file in ("test_burns.py", "test_rests.py")
    )
    assert 0.5 <= burnt < 1.5
    assert rested < 0.3
