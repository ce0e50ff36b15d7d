"""Hosts of a Slurm job."""

from __future__ import annotations

import subprocess

from mldiagnostics.errors import ConfigurationError

TIMEOUT_S = 30.0


def slurm_hosts(job: str) -> list[str]:
    """Return the hosts of a running job, by its id. Raises `ConfigurationError`."""
    nodes = _run("squeue", "--noheader", f"--jobs={job}", "--states=RUNNING", "--format=%N").strip()
    if not nodes:
        raise ConfigurationError(f"--slurm-job {job}: not running; `squeue --me` shows the jobs")
    return _run("scontrol", "show", "hostnames", nodes.replace("\n", ",")).split()


def _run(*command: str) -> str:
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"--slurm-job: {command[0]} is not installed here; run this where Slurm is, or pass --hosts-file"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"--slurm-job: {command[0]} did not end in {TIMEOUT_S:g} s; try again") from error
    if ended.returncode:
        reason = " ".join(ended.stderr.split()) or f"exit code {ended.returncode}"
        raise ConfigurationError(f"--slurm-job: {command[0]}: {reason}; check the id of the job")
    return ended.stdout
