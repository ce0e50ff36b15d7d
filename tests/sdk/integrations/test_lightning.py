"""The logger in a real Lightning Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.examples import run_example

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers


def test_a_training_is_a_run(tmp_path: Path) -> None:
    example = run_example("lightning/train.py", tmp_path, environment="trainers")
    row = example.row
    assert (row.name, row.run_group, row.phase, row.step) == ("adder", "examples", "Completed", 9)
    assert row.configs["user"] == {"learning_rate": 0.1}
    losses = example.series("loss")
    assert [step for step, _ in losses] == [1, 3, 5, 7, 9]
    assert all(isinstance(value, float) for _, value in losses)
    assert [step for step, _ in example.series("validation_loss")] == [9]
    account = example.account()
    assert (account.max_step, account.disruptions) == (9, 0)
    assert "EVAL" in {custom for _, custom in account.unproductive}
