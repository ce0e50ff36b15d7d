"""Example: a small GPT that is preempted and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.programs.examples import ROOT, Example, python, run_example
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "120"


@pytest.mark.peers
def test_the_gpt_learns_and_goes_on_after_a_preemption(tmp_path: Path) -> None:
    variables = {"STEPS": STEPS, "RUN_WORKLOAD_ID": "gpt"}
    environment = {**of_programs(), "PYTHONPATH": str(ROOT / "sdk/src"), "JAX_PLATFORMS": "cpu", **variables}
    command = [python("orbax"), str(ROOT / "examples/gpt/train.py")]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith("step 50:"):
            assert line, "the program ended"
        os.kill(process.pid, signal.SIGTERM)
        *_, last = process.stdout
    assert process.returncode == 128 + signal.SIGTERM
    stopped = int(last.split()[-1])
    assert last == f"trained steps 0 to {stopped}\n"

    example = run_example("gpt/train.py", tmp_path, environment="orbax", **variables)
    assert f"trained steps {stopped + 1} to 119\n" in example.out
    row = example.row
    assert (row.phase, row.step, row.configs["user"]["parameters"]) == ("Completed", 119, 114_688)
    series = sorted((step or 0, float(str(value))) for step, value in example.series("learning/loss"))
    assert [step for step, _ in series] == [*range(int(STEPS))]
    losses = [loss for _, loss in series]
    assert losses[0] == pytest.approx(5.5, abs=0.2)
    assert losses[-1] < 2.5
    [trace] = tmp_path.glob("mldiagnostics/*/plugins/profile/a0-s20/*.xplane.pb")
    assert b"jit_step" in trace.read_bytes()
    account = example.account()
    assert (account.max_step, account.disruptions) == (119, 1)
    assert account.productive > 0


@pytest.mark.peers
def test_the_gpt_of_torch_trains_on_two_processes_as_one_run(tmp_path: Path) -> None:
    variables = {"STEPS": "40", "OMP_NUM_THREADS": "1"}
    environment = {**of_programs(), "PYTHONPATH": str(ROOT / "sdk/src"), **variables}
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [python("torch"), *launcher, str(ROOT / "examples/gpt/train_torch.py")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    example = Example(tmp_path, done.stdout, done.stderr)
    assert "trained steps 0 to 39\n" in example.out
    row = example.row
    assert (row.phase, row.step) == ("Completed", 39)
    losses = sorted((step or 0, float(str(value))) for step, value in example.series("learning/loss"))
    assert [step for step, _ in losses] == [step for step in range(40) for _ in range(2)]
    assert losses[-1][1] < losses[0][1] - 1
    assert len([*tmp_path.glob("mldiagnostics/*/plugins/profile/a0-s20/*.xplane.pb")]) == 2
    account = example.account()
    assert (account.max_step, account.disruptions) == (39, 0)
