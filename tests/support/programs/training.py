"""Real training processes to profile, with several frameworks, each with visible progress."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.ports import free_port

_HERE = Path(__file__).parent
_START_DEADLINE_S = 200.0
_PORTS = 3
"""Ports that are tried: a program binds its port after seconds of imports, and another one may have it by then."""


@dataclass(frozen=True)
class Training:
    """A process that trains and listens for profilers on `port`."""

    process: subprocess.Popen[bytes]
    port: int
    progress: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def steps(self) -> int:
        return int(self.progress.read_text() or 0) if self.progress.exists() else 0

    def wait_for_step(self, number: int, *, deadline_s: float = 30) -> None:
        """Wait until the loop has reached a step; a frozen loop fails."""
        until = time.monotonic() + deadline_s
        while self.steps() < number:
            assert self.process.poll() is None, f"the training process ended with {self.process.returncode}"
            assert time.monotonic() < until, f"the training stands at step {self.steps()}, wanted {number}"
            time.sleep(0.05)


@contextmanager
def training(python: Path, program: str, folder: Path, *flags: str) -> Iterator[Training]:
    """Start a training program of this folder and wait for its first step."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    for left in reversed(range(_PORTS)):
        port = free_port()
        progress, log = folder / f"progress-{port}", folder / f"log-{port}"
        command = [str(python), str(_HERE / program), str(port), str(progress), *flags]
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            started = Training(process, port, progress)
            try:
                started.wait_for_step(1, deadline_s=_START_DEADLINE_S)
            except AssertionError as error:
                if left and b"Failed to bind" in log.read_bytes():
                    continue
                raise AssertionError(f"{error}:\n{log.read_text(errors='replace')[-2000:]}") from error
            yield started
            return
        finally:
            process.kill()
            process.wait()
