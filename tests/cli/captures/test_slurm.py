from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.programs.command_line import CommandLine

PROGRAMS = {
    "squeue": '[ "$*" = "--noheader --jobs=7 --states=RUNNING --format=%N" ] && echo "gpu[1-2]" || true',
    "scontrol": '[ "$*" = "show hostnames gpu[1-2]" ] && printf "gpu1\\ngpu2\\n"',
}


@pytest.fixture
def slurm(mldiag: CommandLine) -> dict[str, str]:
    """Variables with Slurm's programs, which answer for the job 7."""
    for name, program in PROGRAMS.items():
        path = mldiag.folder / name
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    return {"PATH": f"{mldiag.folder}:/usr/bin:/bin"}


def test_the_hosts_of_a_job_are_captured(mldiag: CommandLine, slurm: dict[str, str]) -> None:
    lines = mldiag.lines("capture", "--slurm-job", "7", "--port", "9012", "--dry-run", env=slurm)
    assert [line.split()[0] for line in lines[1:]] == ["gpu1:9012", "gpu2:9012"]


def test_a_job_that_does_not_run_and_a_missing_slurm_are_named(mldiag: CommandLine, slurm: dict[str, str]) -> None:
    message = mldiag.failure("capture", "--slurm-job", "8", env=slurm)
    assert message == "--slurm-job 8: not running; `squeue --me` shows the jobs"
    assert "squeue is not installed here" in mldiag.failure("capture", "--slurm-job", "7", env={"PATH": "/nowhere"})
