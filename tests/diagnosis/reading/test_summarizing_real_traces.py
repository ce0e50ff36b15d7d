"""Real traces of several frameworks, beside XProf and the program's own clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_diagnosis.child import summarize
from mldiagnostics_diagnosis.reading.names import is_loop
from mldiagnostics_diagnosis.reading.planes import read
from support.programs import environments, traced_steps
from support.programs.command_line import CommandLine
from support.programs.xprof_reader import xprof

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_diagnosis.summary import HostSummary, Steps

pytestmark = pytest.mark.peers

PROGRAM = Path(traced_steps.__file__)
OWN = ""
"""The environment of the tests."""
SLACK = 0.4
"""Other work on the machine may come between an event of the trace and the clock of the program."""


@dataclass(frozen=True)
class TracedProgram:
    """A trace, its summary, and starts of steps and lengths of inputs by the clock."""

    trace: Path
    summary: HostSummary
    starts: list[float]
    inputs: list[float]

    @property
    def steps(self) -> Steps:
        assert self.summary.steps
        return self.summary.steps


def _traced(environment: str, framework: str, folder: Path, rows: int = traced_steps.WIDTH) -> TracedProgram:
    python = Path(sys.executable)
    if environment:
        try:
            python = environments.interpreter(environment)
        except environments.Unavailable as error:
            pytest.skip(f"no environment {environment}: {error}")
    of_devices = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "XLA_FLAGS": traced_steps.FLAGS[framework]}
    done = subprocess.run(
        [python, PROGRAM, framework, folder, str(rows)],
        env={**os.environ, **of_devices},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trace = folder / f"{framework}.xplane.pb"
    return TracedProgram(trace, summarize(trace), **json.loads(done.stdout.splitlines()[-1]))


def _has_the_time_of_the_steps(traced: TracedProgram) -> None:
    between = (traced.starts[-1] - traced.starts[0]) / (len(traced.starts) - 1)
    assert traced.steps.total == len(traced.starts) - 1
    assert mean(traced.steps.seconds) == pytest.approx(between, rel=SLACK)


def _has_the_numbers_of_the_steps(traced: TracedProgram) -> None:
    steps = traced.steps
    assert steps.source == "annotations"
    assert set(steps.numbers) < {*range(traced_steps.FIRST, traced_steps.FIRST + traced_steps.STEPS)}


def _has_the_time_of_the_input(traced: TracedProgram) -> None:
    own, shown = median(traced.inputs), median(traced.steps.phases["input"])
    assert own * (1 - SLACK) <= shown <= own * (1 + SLACK) + 0.002


def _explains_the_time_without_a_checkpoint(traced: TracedProgram) -> None:
    summary = traced.summary
    assert (summary.platform, summary.coverage > 0.6) == ("cpu", True)
    assert "checkpoint" not in traced.steps.phases


def _has_arrivals_and_waits(traced: TracedProgram) -> None:
    for length, arrival, wait in zip(traced.steps.seconds, traced.steps.arrivals, traced.steps.waits, strict=True):
        assert arrival + wait <= length + 2e-6
    assert median(traced.steps.arrivals) >= traced_steps.INPUT_S
    assert traced.summary.program
    assert any(each.phase == "collective" for each in traced.summary.operations)


def _has_the_operations_of_xprof(traced: TracedProgram) -> None:
    from xprof.profile_data import ProfileData

    trace = traced.trace
    counts: Counter[str] = Counter()
    nanoseconds: Counter[str] = Counter()
    for plane in ProfileData.from_file(str(trace)).planes:
        for event in (event for line in plane.lines for event in line.events):
            if "hlo_op" in {statistic for statistic, _ in event.stats} and not is_loop(event.name):
                counts[event.name] += 1
                nanoseconds[event.name] += event.duration_ns
    [device] = read(memoryview(trace.read_bytes())).devices
    assert {operation: count for (operation, _), (_, count) in device.totals.items()} == counts != Counter()
    for (operation, _), (picoseconds, count) in device.totals.items():  # XProf's times are whole nanoseconds
        assert picoseconds / 1000 == pytest.approx(nanoseconds[operation], abs=count), operation


def _has_the_steps_of_xprofs_overview(traced: TracedProgram) -> None:
    tables = [part for part in xprof("overview_page", [str(traced.trace)]) if part.get("rows")]
    [steps] = [table for table in tables if table["cols"][0]["id"] == "stepnum"]
    columns = [column["id"] for column in steps["cols"]]
    rows = [dict(zip(columns, (cell["v"] for cell in row["c"]), strict=True)) for row in steps["rows"]]
    theirs = {int(row["stepnum"].split()[-1]): row["stepTimeMs"] / 1000 for row in rows}
    ours = dict(zip(traced.steps.numbers, traced.steps.seconds, strict=True))
    common = theirs.keys() & ours.keys()
    assert len(common) >= traced_steps.STEPS - 3
    own, other = (sum(times[number] for number in common) for times in (ours, theirs))
    assert own == pytest.approx(other, rel=SLACK)


_OF_ALL = (_has_the_time_of_the_steps, _explains_the_time_without_a_checkpoint)
_OF_JAX = (
    *_OF_ALL,
    _has_the_numbers_of_the_steps,
    _has_the_time_of_the_input,
    _has_arrivals_and_waits,
    _has_the_operations_of_xprof,
    _has_the_steps_of_xprofs_overview,
)
_WITHOUT_MARKS = (*_OF_ALL, _has_the_operations_of_xprof)


@pytest.mark.parametrize(
    ("environment", "framework", "checks"),
    [
        pytest.param(OWN, "jax", _OF_JAX, id="jax"),
        pytest.param("jax-0.8", "jax", _OF_JAX, id="jax-0.8"),
        pytest.param(OWN, "jax_alone", _WITHOUT_MARKS, id="jax without annotations"),
        pytest.param("jax-0.8", "jax_alone", _WITHOUT_MARKS, id="jax-0.8 without annotations"),
        pytest.param("torch", "torch", (*_OF_ALL, _has_the_time_of_the_input), id="torch"),
        pytest.param("torch", "torch_xla", (*_WITHOUT_MARKS, _has_the_numbers_of_the_steps), id="torch_xla"),
    ],
)
def test_a_trace_says_what_its_program_and_xprof_say(
    environment: str, framework: str, checks: tuple[Callable[[TracedProgram], None], ...], tmp_path: Path
) -> None:
    traced = _traced(environment, framework, tmp_path)
    for check in checks:
        check(traced)


def test_new_shapes_of_operations_show_a_larger_batch(tmp_path: Path) -> None:
    runs = {rows: tmp_path / str(rows) for rows in (256, 512)}
    for rows, folder in runs.items():
        session = folder / "plugins/profile/s"
        session.mkdir(parents=True)
        _traced(OWN, "jax", session, rows)
    mldiag, command = CommandLine(tmp_path), ("diagnose", "512", "--against", "256")
    changes = mldiag.document(*command)["operations"]
    shapes = [change["shapes"] for change in changes if change["shapes"]]
    assert ["f32[128,256]", "f32[256,256]"] in shapes  # of each of two devices
    assert all(change["shapes"] is None for change in changes if change["phase"] != "compute")  # weights, host
    assert any(line.endswith("f32[128,256] → f32[256,256]") for line in mldiag.lines(*command))
