"""Example: a training loop with Flax and Optax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.examples import run_example

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.peers
def test_the_flax_example_records_metrics_and_a_profile_of_three_steps(tmp_path: Path) -> None:
    example = run_example("flax/train.py", tmp_path, environment="flax")
    row = example.row
    assert (row.phase, row.step, row.configs["user"]["width"]) == ("Completed", 29, 64)
    losses = [value for _, value in example.series("loss")]
    assert len(losses) == len(example.series("gradient_norm")) == 30
    assert isinstance(losses[0], float)
    assert f"loss {losses[-1]:.3f}" in example.out
    [trace] = tmp_path.glob("mldiagnostics/*/plugins/profile/a0-s10/*.xplane.pb")
    assert b"jit_step" in trace.read_bytes()
