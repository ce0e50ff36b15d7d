"""One stage of `make test`: a command, the process that runs it, and its log."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

# Time to write where each thread is, which pytest does at SIGABRT.
ABORTED_S = 10.0
FAILED_NOW = "failed now: "  # conftest.py writes it when a test fails, before its name


class Result(Enum):
    """The end of a stage."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Outcome:
    """The end of a stage, and the time that it took."""

    result: Result
    seconds: float = 0.0


@dataclass(frozen=True)
class Stage:
    """One command; `after` only orders, without `needs` passed it is not run. Other names than those that run are fine.

    A stage that prepares others runs beside any number of stages, and its output is shown only if it fails. One with a
    niceness leaves the processor to the others.
    """

    name: str
    title: str
    command: Sequence[str | Path]
    folder: Path
    about: str
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    prepares: bool = False
    niceness: int = 0


@dataclass
class RunningStage:
    """A stage that has started."""

    stage: Stage
    log: Path
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)
    read: int = 0
    size: int = 0
    grown: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """Return the time since the start."""
        return time.monotonic() - self.started

    def new_failures(self) -> list[str]:
        """Return the tests that failed since the last call."""
        with self.log.open("rb") as log:
            log.seek(self.read)
            text, line_break, _ = log.read().rpartition(b"\n")
        self.read += len(text + line_break)
        lines = text.decode(errors="replace").splitlines()
        return [line.removeprefix(FAILED_NOW) for line in lines if line.startswith(FAILED_NOW)]

    def silence(self) -> float:
        """Return the time since the last output."""
        if (size := self.log.stat().st_size) != self.size:
            self.size, self.grown = size, time.monotonic()
        return time.monotonic() - self.grown

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def abort(self) -> None:
        """End the command, which may hang, and its children."""
        self.signal(signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=ABORTED_S)
        self.signal(signal.SIGKILL)
        self.process.wait()

    def last_line(self) -> str:
        """Return the last line of the output so far, without a line break."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 2000))
            lines = log.read().decode(errors="replace").split("\n")
        return next((line.strip()[-100:] for line in reversed(lines) if line.strip()), "")


def start(stage: Stage, logs: Path) -> RunningStage:
    """Start a stage, which writes `<logs>/<name>.log`, in a session of its own."""
    log = logs / f"{stage.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["nice", "-n", str(stage.niceness), *stage.command],
            cwd=stage.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Linux shares the processor among sessions first (sched(7), autogroups): niceness counts within one only.
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(stage.niceness))
    return RunningStage(stage, log, process)
