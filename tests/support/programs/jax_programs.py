"""Small training programs with JAX, each in its own process: JAX does not work in tests that fork."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldiagnostics.runs import list_runs, read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.pipeline.records import Record

DEADLINE_S = 240

_SDK = Path(__file__).parents[3] / "sdk/src"

PRELUDE = """
import json, sys, time
import jax, jax.numpy as jnp
from mldiagnostics import diagnostics
from mldiagnostics.profiling import session
from mldiagnostics.profiling.xprof import xprof
from mldiagnostics.run import machinelearning_run

_multiply = jax.jit(lambda x: jnp.tanh(x @ x) / 2)

def step(name="train_step"):
    with jax.profiler.TraceAnnotation(name):
        _multiply(jnp.ones((64, 64))).block_until_ready()

def settle():
    while session._unstored:
        time.sleep(0.01)

def report(**values):
    print(json.dumps(values), flush=True)

def begin(**more):
    return machinelearning_run("demo", run_workload_id="demo", storage=sys.argv[1], **more)

"""


@dataclass(frozen=True)
class Ended:
    """A finished program: its reported values, and its files below `storage`."""

    storage: str
    returncode: int
    reported: dict[str, Any]
    log: str

    def sessions(self) -> list[Record]:
        """Return all records of profile sessions, in order of time."""
        return sorted(self._records(), key=lambda record: record.t)

    def states(self, session: str) -> list[str]:
        """Return the states of a session, in order."""
        return [str((record.payload or {})["state"]) for record in self.sessions() if record.name == session]

    def phase(self) -> str:
        """Return the phase of the only run."""
        (row,) = list_runs(self.storage)
        return row.phase

    def _records(self) -> Iterator[Record]:
        for row in list_runs(self.storage):
            yield from read_records(self.storage, row.run_id, kinds={"session"})


def start_program(
    text: str, storage: Path | str, *, python: Path | str = sys.executable, prelude: str = PRELUDE, **environment: str
) -> subprocess.Popen[str]:
    """Start the prelude and then `text`, with `storage` as its argument."""
    own = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(_SDK)}
    env = {**os.environ, **own, **environment}
    return subprocess.Popen(
        [python, "-c", prelude + textwrap.dedent(text), str(storage)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end_of(process: subprocess.Popen[str], storage: Path | str) -> Ended:
    """Wait for a program to end by itself."""
    with process:
        try:
            out, err = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    reported: dict[str, Any] = {}
    for line in out.splitlines():
        reported |= json.loads(line)
    return Ended(str(storage), process.returncode, reported, err)


def run_program(
    text: str, storage: Path | str, *, python: Path | str = sys.executable, prelude: str = PRELUDE, **environment: str
) -> Ended:
    """Run a program to its end."""
    return end_of(start_program(text, storage, python=python, prelude=prelude, **environment), storage)
