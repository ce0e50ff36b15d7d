"""A job that is killed and restarted, and the use of its time by its own diary: the truth without the SDK."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from support.programs.examples import python
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TESTS = Path(__file__).parents[2]
_PROGRAM = _TESTS / "support/programs/training_orbax.py"
_LIMIT_S = 120.0

PHASES = {
    "init": "TPU_INITIALIZATION",
    "prepare": "TRAINING_PREP",
    "restore": "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME",
    "save": "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    "eval": "EVAL",
}
"""Entries of the diary that always count as a bucket."""


class Entry(NamedTuple):
    """From `t` (Unix seconds) on a process does `what`, for a step where there is one."""

    t: float
    pid: int
    what: str
    step: int


class Compiled(NamedTuple):
    """From `start` to `end` JAX was on the way from a function to a program."""

    start: float
    end: float


@dataclass(frozen=True)
class Diary:
    """The entries of all processes of a job, in order."""

    entries: Sequence[Entry]
    compiled: Sequence[Compiled]

    @property
    def attempts(self) -> list[list[Entry]]:
        return [list(each) for _, each in groupby(self.entries, key=lambda entry: entry.pid)]

    def first(self, what: str, attempt: int = 0) -> Entry:
        return next(entry for entry in self.attempts[attempt] if entry.what == what)

    def steps(self, attempt: int) -> list[Entry]:
        return [entry for entry in self.attempts[attempt] if entry.what == "step"]

    def resumed(self, attempt: int) -> int:
        """The first step of an attempt."""
        return self.steps(attempt)[0].step

    def steps_lost(self, attempt: int) -> int:
        """Return the number of steps of an attempt that were done again; the interrupted one was not done."""
        return sum(step.step >= self.resumed(attempt + 1) for step in self.steps(attempt)[:-1])

    def spent(self, attempt: int) -> dict[str, float]:
        """Return the seconds of an attempt by bucket, until the next one or the end; productive time is ""."""
        attempts = range(len(self.attempts))
        until = self.first("begin", attempt + 1) if attempt + 1 in attempts else self.first("end", attempt)
        resumed = min((self.resumed(later) for later in attempts if later > attempt), default=None)
        begin = self.first("begin", attempt)
        return self._divided([entry for entry in self.attempts[attempt] if entry.t >= begin.t], until, resumed)

    def _divided(self, entries: Sequence[Entry], until: Entry, resumed: int | None) -> dict[str, float]:
        """Divide the time from the first entry to `until`; steps from `resumed` on are lost, the last one broke off."""
        by_bucket: dict[str, float] = defaultdict(float)
        taken: dict[int, float] = defaultdict(float)
        steps = [entry.step for entry in entries if entry.what == "step"]
        step: int | None = None
        for entry, following in pairwise([*(e for e in entries if e.t < until.t), until]):
            step = entry.step if entry.what == "step" else step
            compiling = self._compiling(entry.t, following.t)
            by_bucket["PROGRAM_STARTUP"] += compiling
            seconds = following.t - entry.t - compiling
            if entry.what in PHASES:
                by_bucket[PHASES[entry.what]] += seconds
            elif step is None:
                by_bucket["DATA_LOADING_SYNC" if entry.what == "load" else "OTHER"] += seconds
            elif resumed is not None and step == steps[-1]:
                by_bucket["INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"] += seconds
            elif resumed is not None and step >= resumed:
                by_bucket["WASTED_PROGRESS_FROM_DISRUPTION"] += seconds
            else:
                taken[step] += seconds
        startup = self._startup(taken, closed=steps[:-1])
        by_bucket["PROGRAM_STARTUP"] += startup
        by_bucket[""] += sum(taken.values()) - startup
        return by_bucket

    @staticmethod
    def _startup(taken: dict[int, float], closed: Sequence[int]) -> float:
        """Return by how much the first step was longer than the mean of the others."""
        first, *others = [taken[step] for step in closed if step in taken] or [0.0]
        return max(0.0, first - sum(others) / len(others)) if others else 0.0

    def _compiling(self, start: float, end: float) -> float:
        """Return the compilation time in a stretch; overlapping compilations count once."""
        total, reached = 0.0, start
        for span in sorted(self.compiled):
            total += max(0.0, min(span.end, end) - max(span.start, reached))
            reached = max(reached, min(span.end, end))
        return total


def read_diary(path: Path) -> Diary:
    entries, compiled = [], []
    for line in path.read_text().splitlines():
        t, pid, what, rest = line.split()
        if what == "compiled":
            compiled.append(Compiled(float(t), float(rest)))
        else:
            entries.append(Entry(float(t), int(pid), what, int(rest)))
    return Diary(entries, compiled)


@dataclass(frozen=True)
class Job:
    """The training of `training_orbax.py` in a folder; it can be restarted, and is always the same run."""

    folder: Path
    steps: int
    environment: str = "orbax"

    @property
    def storage(self) -> str:
        return str(self.folder / "storage")

    @property
    def log(self) -> str:
        """The run's directory."""
        return f"{self.storage}/goodput"

    @property
    def out(self) -> str:
        """The end of the output of all attempts."""
        return (self.folder / "out").read_text()[-4000:]

    @property
    def diary(self) -> Diary:
        return read_diary(self.folder / "diary")

    @contextmanager
    def attempt(self, *, hang_at: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Start the job again, and kill it after the block if it still runs; it can be made to hang in a step."""
        own = {"PYTHONPATH": str(_TESTS.parent / "sdk/src"), "JAX_PLATFORMS": "cpu", "MLDIAG_STORAGE": self.storage}
        arguments = [str(self.folder / "diary"), str(self.folder / "checkpoints"), str(self.steps)]
        hang = [] if hang_at is None else [str(hang_at)]
        with (self.folder / "out").open("ab") as out:
            process = subprocess.Popen(
                [python(self.environment), str(_PROGRAM), *arguments, *hang],
                env={**of_programs(), **own},
                stdout=out,
                stderr=out,
            )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for_step(self, number: int, process: subprocess.Popen[bytes]) -> Entry:
        """Return when the running attempt has begun a step, and the SDK knows it."""
        deadline = time.monotonic() + _LIMIT_S
        while time.monotonic() < deadline:
            assert process.poll() is None, self.out
            if (self.folder / "diary").exists():
                for entry in self.diary.entries:
                    if (entry.pid, entry.what) == (process.pid, "compute") and entry.step >= number:
                        return entry
            time.sleep(0.002)
        raise AssertionError(f"step {number} does not begin")
