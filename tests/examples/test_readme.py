"""Python blocks of README.md: each runs unchanged and has the documented result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cluster.ports import free_port
from mldiagnostics.runs import read_records
from support.programs.processes import Programs
from support.programs.xprof_reader import names_in

pytestmark = pytest.mark.peers

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
TRAIN_STEP = """
import jax, jax.numpy as jnp
matrix = jnp.ones((64, 64))
train_step = jax.jit(lambda: jnp.tanh(matrix @ matrix).mean())
"""


def block_with(text: str) -> str:
    [block] = [block for block in BLOCKS if text in block]
    return str(block)


def test_every_block_has_a_test() -> None:
    assert [block_with("with machinelearning_run(")] == BLOCKS


def test_the_training_loop_records_and_profiles(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    source = TRAIN_STEP + block_with("with machinelearning_run(")
    ended = programs.run(source, env={"JAX_PLATFORMS": "cpu", "MLDIAG_PROFILER_PORT": str(free_port())})
    assert ended.code == 0, ended.err
    assert ended.err.count("\n") == 1, ended.err  # the line that says where the run is
    row = programs.the_run()
    assert (row.name, row.phase, row.step, row.configs["user"]) == ("trainer", "Completed", 999, {"lr": 3e-4})
    losses = [r for r in read_records(programs.storage, row.run_id, kinds={"metric"}) if r.name == "loss"]
    assert [record.step for record in losses] == list(range(1000))
    [trace] = Path(row.directory, "plugins/profile").glob("*/*.xplane.pb")
    assert any("lambda" in name for name in names_in(str(trace)))
    commands = re.findall(r"^(?:pip .* && )?mldiag (runs list|goodput RUN) ", README, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        arguments = ["mldiag", *command.replace("RUN", row.run_id).split(" ")]
        shown = programs.run(
            f"import runpy, sys\nsys.argv = {arguments}\nrunpy.run_module('mldiagnostics_cli', run_name='__main__')",
            env={"MLDIAG_STORAGE": programs.storage},
        )
        assert (shown.code, row.run_id[:8] in shown.out or "goodput" in shown.out.lower()) == (0, True), shown.err
