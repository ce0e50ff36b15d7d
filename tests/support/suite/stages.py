"""Run commands that depend on each other, some side by side, and show each one's output when it ends."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from support.suite.picture import failed_log, picture, repeat, table
from support.suite.stage_process import Outcome, Result, RunningStage, Stage, start

POLL_S = 0.05
PROGRESS_S = 30.0
# Time in which the commands end by themselves after Ctrl-C.
INTERRUPTED_S = 20.0
# Longest time without output; the longest step of a preparation, and a test, write within half of it.
SILENCE_S = 900.0


def ready(stages: Sequence[Stage], ended: Collection[str], running: Collection[str], limit: int) -> list[Stage]:
    """Return the stages that can start now, at most `limit` at a time beside those that prepare."""
    names = {stage.name for stage in stages}
    busy = sum(not stage.prepares for stage in stages if stage.name in running)
    starting: list[Stage] = []
    for stage in stages:
        if stage.name in ended or stage.name in running:
            continue
        waits = any(name in names and name not in ended for name in (*stage.after, *stage.needs))
        if waits or not (stage.prepares or busy < limit):
            continue
        busy += not stage.prepares
        starting.append(stage)
    return starting


def run(
    stages: Sequence[Stage], logs: Path, *, limit: int, out: TextIO = sys.stdout, silence_s: float = SILENCE_S
) -> dict[str, Outcome]:
    """Run the stages, earlier ones first where several can start; return their outcomes in the order of `stages`.

    Each stage writes `<logs>/<name>.log`. A stage that cannot be started because what it needs failed is `NOT_RUN`.
    One that writes nothing for `silence_s` hangs, and is ended.
    """
    logs.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, Outcome] = {}
    running: dict[str, RunningStage] = {}
    progress = _Progress(out)
    with _ended(running), _interrupt_noted() as interrupted:
        while len(outcomes) < len(stages):
            if interrupted.is_set():
                raise KeyboardInterrupt
            for stage in ready(stages, outcomes, running, limit):
                if any(name in outcomes and outcomes[name].result is not Result.PASSED for name in stage.needs):
                    outcomes[stage.name] = Outcome(Result.NOT_RUN)
                else:
                    _say(out, f"==> {stage.title}: started (about {stage.about})")
                    running[stage.name] = start(stage, logs)
            for name, each in list(running.items()):
                if each.silence() > silence_s:
                    _say(out, f"    {name}: no output for {silence_s:g} s; ended")
                    each.abort()
                if each.process.poll() is not None:
                    del running[name]
                    outcomes[name] = _finish(each, out)
            progress.show(running.values())
            time.sleep(POLL_S)
    return {stage.name: outcomes[stage.name] for stage in stages}


def summary(stages: Sequence[Stage], outcomes: Mapping[str, Outcome], logs: Path, seed: int = 0) -> str:
    """Return the picture of a run: a table of its stages, and at last the logs of failures and how to repeat them."""
    texts = {stage.name: _text(stage, outcomes[stage.name], logs) for stage in stages}
    rows = [
        (outcomes[stage.name].result.value, outcomes[stage.name].seconds, stage.title, picture(texts[stage.name]))
        for stage in stages
    ]
    lines = table(rows)
    for stage, (*_, each) in zip(stages, rows, strict=True):
        if outcomes[stage.name].result is Result.FAILED:
            lines += ["", f"==> {stage.title}: failures", failed_log(texts[stage.name])]
            lines.append(f"whole output: {logs / f'{stage.name}.log'}")
            lines += [f"repeat with: {repeat(each.failures, seed)}"] if each.failures else []
    return "\n".join(lines)


def _text(stage: Stage, outcome: Outcome, logs: Path) -> str:
    """Return the log of a stage; that of one that was not run is of an earlier run."""
    if outcome.result is Result.NOT_RUN:
        return ""
    return (logs / f"{stage.name}.log").read_text(errors="replace")


def all_passed(outcomes: Mapping[str, Outcome]) -> bool:
    """Return whether every stage passed; one that was not run did not."""
    return all(outcome.result is Result.PASSED for outcome in outcomes.values())


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Progress:
    """Prints each failed test at once, and every `PROGRESS_S` the last line of a running stage if it has changed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._next = time.monotonic() + PROGRESS_S
        self._shown: dict[str, str] = {}

    def show(self, running: Collection[RunningStage]) -> None:
        for each in running:
            for test in each.new_failures():
                _say(self._out, f"    {each.stage.name}, {each.seconds() / 60:.1f} min: failed: {test}")
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PROGRESS_S
        for each in running:
            line = each.last_line()
            if line and line != self._shown.get(each.stage.name):
                self._shown[each.stage.name] = line
                _say(self._out, f"    {each.stage.name}, {each.seconds() / 60:.1f} min: {line}")


@contextlib.contextmanager
def _interrupt_noted() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets; as an exception it could come between the start of a stage and its entry."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    previous = signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, previous)


@contextlib.contextmanager
def _ended(running: Mapping[str, RunningStage]) -> Iterator[None]:
    """End the stages that run, after Ctrl-C or an error."""
    try:
        yield
    except KeyboardInterrupt:
        for each in running.values():
            each.signal(signal.SIGINT)
        _await(running.values(), INTERRUPTED_S)
        raise
    finally:
        for each in running.values():
            each.process.terminate()
            each.process.wait()


def _finish(each: RunningStage, out: TextIO) -> Outcome:
    """Show the output of a stage that has ended; return its outcome."""
    outcome = Outcome(Result.FAILED if each.process.returncode else Result.PASSED, each.seconds())
    took = f"{outcome.result.value} in {outcome.seconds:.0f} s"
    if each.stage.prepares and outcome.result is Result.PASSED:
        _say(out, f"==> {each.stage.title}: {took}")
        return outcome
    _say(out, f"\n==> {each.stage.title}: output")
    _say(out, each.log.read_text(errors="replace").rstrip())
    _say(out, f"==> {each.stage.title}: {took}\n")
    return outcome


def _await(running: Collection[RunningStage], seconds: float) -> None:
    """Wait until the stages have ended, at most this long."""
    deadline = time.monotonic() + seconds
    for each in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            each.process.wait(timeout=max(0.0, deadline - time.monotonic()))


def _say(out: TextIO, line: str) -> None:
    out.write(line + "\n")
    out.flush()
