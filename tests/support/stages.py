"""Run commands that depend on each other, some side by side, and show each one's output when it ends."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TextIO

POLL_S = 0.05
PROGRESS_S = 30.0
# Time in which the commands end by themselves after Ctrl-C, which the terminal sends to all of them.
INTERRUPTED_S = 20.0
FAILURE = re.compile(r"(FAILED|ERROR) ")  # lines of pytest's summary
FAILURES_SHOWN = 40


class Result(Enum):
    """The end of a stage."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Stage:
    """One command; `after` only orders, without `needs` passed it is not run. Other names than those that run are fine.

    A stage that prepares others runs beside any number of stages, and its output is shown only if it fails.
    """

    name: str
    title: str
    command: Sequence[str | Path]
    folder: Path
    about: str
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    prepares: bool = False


@dataclass
class _Running:
    """A stage that has started."""

    stage: Stage
    log: Path
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)

    def last_line(self) -> str:
        """Return the last line of the output so far, without a line break."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 2000))
            lines = log.read().decode(errors="replace").split("\n")
        return next((line.strip()[-100:] for line in reversed(lines) if line.strip()), "")


def ready(stages: Sequence[Stage], results: Mapping[str, Result], running: Collection[str], limit: int) -> list[Stage]:
    """Return the stages that can start now, at most `limit` at a time beside those that prepare."""
    names = {stage.name for stage in stages}
    busy = sum(not stage.prepares for stage in stages if stage.name in running)
    starting: list[Stage] = []
    for stage in stages:
        if stage.name in results or stage.name in running:
            continue
        waits = any(name in names and name not in results for name in (*stage.after, *stage.needs))
        if waits or not (stage.prepares or busy < limit):
            continue
        busy += not stage.prepares
        starting.append(stage)
    return starting


def run(stages: Sequence[Stage], logs: Path, *, limit: int, out: TextIO = sys.stdout) -> dict[str, Result]:
    """Run the stages, earlier ones first where several can start; return their results in the order of `stages`.

    Each stage writes `<logs>/<name>.log`. A stage that cannot be started because what it needs failed is `NOT_RUN`.
    """
    logs.mkdir(parents=True, exist_ok=True)
    results: dict[str, Result] = {}
    running: dict[str, _Running] = {}
    progress = _Progress(out)
    try:
        while len(results) < len(stages):
            for stage in ready(stages, results, running, limit):
                if any(results.get(name, Result.PASSED) is not Result.PASSED for name in stage.needs):
                    results[stage.name] = Result.NOT_RUN
                else:
                    _say(out, f"==> {stage.title}: started (about {stage.about})")
                    running[stage.name] = _start(stage, logs)
            for name, each in list(running.items()):
                if each.process.poll() is not None:
                    del running[name]
                    results[name] = _finish(each, out)
            progress.show(running.values())
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        _await(running.values(), INTERRUPTED_S)
        raise
    finally:
        for each in running.values():
            each.process.terminate()
            each.process.wait()
    return {stage.name: results[stage.name] for stage in stages}


def summary(stages: Sequence[Stage], results: Mapping[str, Result], logs: Path) -> str:
    """Return a line for each stage, and below it the tests that failed."""
    lines = []
    for stage in stages:
        lines.append(f"{results[stage.name].value:8} {stage.title}")
        if results[stage.name] is Result.FAILED:
            output = (logs / f"{stage.name}.log").read_text(errors="replace").splitlines()
            failures = [line for line in output if FAILURE.match(line)]
            lines += [f"    {line[:240]}" for line in failures[:FAILURES_SHOWN]]
            if len(failures) > FAILURES_SHOWN:
                lines.append(f"    and {len(failures) - FAILURES_SHOWN} more")
            lines.append(f"    whole output: {logs / f'{stage.name}.log'}")
    return "\n".join(lines)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Progress:
    """Prints the last line of each running stage, at most every `PROGRESS_S`, if one has changed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._next = time.monotonic() + PROGRESS_S
        self._shown: dict[str, str] = {}

    def show(self, running: Collection[_Running]) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROGRESS_S
        for each in running:
            line = each.last_line()
            if line and line != self._shown.get(each.stage.name):
                self._shown[each.stage.name] = line
                minutes = (time.monotonic() - each.started) / 60
                _say(self._out, f"    {each.stage.name}, {minutes:.1f} min: {line}")


def _start(stage: Stage, logs: Path) -> _Running:
    log = logs / f"{stage.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            stage.command, cwd=stage.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    return _Running(stage, log, process)


def _finish(each: _Running, out: TextIO) -> Result:
    """Show the output of a stage that has ended; return its result."""
    result = Result.FAILED if each.process.returncode else Result.PASSED
    took = f"{result.value} in {time.monotonic() - each.started:.0f} s"
    if each.stage.prepares and result is Result.PASSED:
        _say(out, f"==> {each.stage.title}: {took}")
        return result
    _say(out, f"\n==> {each.stage.title}: output")
    _say(out, each.log.read_text(errors="replace").rstrip())
    _say(out, f"==> {each.stage.title}: {took}\n")
    return result


def _await(running: Collection[_Running], seconds: float) -> None:
    """Wait until the stages have ended, at most this long."""
    deadline = time.monotonic() + seconds
    for each in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            each.process.wait(timeout=max(0.0, deadline - time.monotonic()))


def _say(out: TextIO, line: str) -> None:
    out.write(line + "\n")
    out.flush()
