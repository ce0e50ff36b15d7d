"""Entries of Cloud Logging as a log, read by gcloud with the rights of the user."""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.text.timestamps import timestamp

from mldiagnostics_cli.captures.gce_tunnels import gcloud_problem

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLogs:
    """Entries of the containers of a job; times are microseconds since 1970.

    Args:
        project: Google Cloud project.
        job: Name of the job, with which the names of its pods begin.
        start: First moment.
        end: Moment after the last one; None for all later ones.
        wanted: A filter of Cloud Logging that entries meet too; empty for all.
        received: Cloud Logging received them from the first moment on and before the second one; None for any time.
    """

    project: str
    job: str
    start: int
    end: int | None
    wanted: str = ""
    received: tuple[int, int] | None = None

    @property
    def title(self) -> str:
        """The name of the log in messages."""
        return f"Cloud Logging of {self.project}"

    @property
    def filter(self) -> str:
        """The filter of Cloud Logging."""
        terms = [
            'resource.type="k8s_container"',
            f"resource.labels.pod_name:{json.dumps(f'{self.job}-')}",
            f'timestamp>="{timestamp(self.start / 1e6)}"',
        ]
        if self.end is not None:
            terms.append(f'timestamp<"{timestamp(self.end / 1e6)}"')
        if self.received is not None:
            since, until = (timestamp(each / 1e6) for each in self.received)
            terms += [f'receiveTimestamp>="{since}"', f'receiveTimestamp<"{until}"']
        return " AND ".join([*terms, *([f"({self.wanted})"] if self.wanted else [])])

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Read the entries while the block runs.

        Raises:
            ConfigurationError: gcloud is not installed.
            MLDiagnosticsError: gcloud cannot read them.
        """
        command = ["gcloud", "logging", "read", self.filter, f"--project={self.project}"]
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    [*command, "--order=asc", "--format=json"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            except FileNotFoundError as error:
                raise ConfigurationError("gcloud: not installed here; install the Google Cloud CLI") from error
            with process:
                try:
                    assert process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
                    yield process.stdout
                except BaseException:
                    process.terminate()
                    raise
            if process.returncode:
                errors.seek(0)
                problem = gcloud_problem(errors.read().decode(errors="replace"))
                raise MLDiagnosticsError(
                    f"logs of project {self.project}: {problem}; check the project and `gcloud auth list`"
                )
