"""Commands of `mldiag`, which the demo runs and prints."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from cluster.paths import REPOSITORY
from cluster.progress import ClusterError

MLDIAG = REPOSITORY / ".venv/bin/mldiag"


def shown(arguments: Sequence[str]) -> str:
    """Return a command as a user types it."""
    return shlex.join(["mldiag", *arguments])


def mldiag(arguments: Sequence[str], env: Mapping[str, str] | None = None, *, with_remarks: bool = False) -> str:
    """Run a command and return its output.

    Args:
        arguments: Arguments of `mldiag`.
        env: Variables beside those of this process.
        with_remarks: Whether standard error is part of the output.

    Raises:
        ClusterError: the command failed; the message quotes it.
    """
    errors = subprocess.STDOUT if with_remarks else subprocess.PIPE
    done = subprocess.run(
        [MLDIAG, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env={**os.environ, **(env or {})},
    )
    if done.returncode:
        output = f"{done.stdout}{done.stderr or ''}".strip()
        raise ClusterError(f"{shown(arguments)}: exited with status {done.returncode}: {output}")
    return done.stdout.strip()
