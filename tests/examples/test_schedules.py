"""The examples of automatic captures without a cluster run as they are."""

from __future__ import annotations

import configparser
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.programs.command_line import CommandLine
from support.programs.profiled_runs import profiled_run
from support.servers.profiler_process import profiler_process

EXAMPLES = Path(__file__).parents[2] / "examples/schedules"


@pytest.fixture
def mldiag(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def test_the_command_of_the_unit_shows_its_captures(mldiag: CommandLine) -> None:
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[method-assign,assignment]  # as its documentation says
    unit.read(EXAMPLES / "mldiag-capture.service")
    program, *arguments = shlex.split(unit["Service"]["ExecStart"].replace("%h/mldiagnostics", "runs"))
    assert program == "mldiag"
    with profiler_process() as server, profiled_run(mldiag.folder, server.port):
        ended = mldiag.run(*arguments, "--dry-run")
    assert ended.code == 0, ended.err
    assert "Trigger: StepTimeRise from 10%" in ended.err


@pytest.mark.parametrize("code", [0, 3])
def test_the_job_of_slurm_ends_as_its_training(mldiag: CommandLine, tmp_path: Path, code: int) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    srun = programs / "srun"  # the only part of Slurm that the script calls
    srun.write_text(f"#!/bin/sh\nexit {code}\n")
    srun.chmod(0o755)
    path = f"{mldiag.script.parent}:{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        [EXAMPLES / "slurm.sh"],
        cwd=mldiag.folder,
        env=mldiag.environment({"MLDIAG_STORAGE": str(mldiag.folder / "runs"), "PATH": path}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
