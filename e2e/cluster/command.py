"""Commands of other programs; a failure quotes the end of their log."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import ambient
from cluster.progress import ClusterError, tail


def run(
    command: Sequence[str],
    *,
    title: str = "",
    given: str = "",
    logs_to_output: bool = False,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command and return its output.

    Args:
        command: Program and arguments.
        title: Stands for the command in an error; default: the whole command.
        given: Standard input.
        logs_to_output: Whether errors are on the standard output too.
        folder: Working directory; None is the current one.
        environment: Environment; None is the user's.

    Raises:
        ClusterError: the command failed; the message quotes its last lines.
    """
    variables = ambient.environment() if environment is None else environment
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=folder, env=variables, check=False)
    if done.returncode:
        log = tail(done.stdout + done.stderr, 30) if logs_to_output else tail(done.stderr)
        raise ClusterError(f"`{title or ' '.join(command)}` ended with {done.returncode}:\n{log}")
    return done.stdout
