"""Example: a training with Keras and a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.examples import run_example

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.peers
def test_the_keras_example_records_steps_metrics_and_validations(tmp_path: Path) -> None:
    example = run_example("keras/train.py", tmp_path, environment="tensorflow", KERAS_BACKEND="tensorflow")
    row = example.row
    assert (row.phase, row.step) == ("Completed", 19)
    assert row.configs["user"]["optimizer"]["learning_rate"] == pytest.approx(0.1)
    points = example.series("loss")
    assert sorted(step or 0 for step, _ in points) == sorted([*range(20), 10, 20])  # and two validations
    account = example.account()
    assert (account.max_step, account.disruptions) == (19, 0)
    assert "EVAL" in {custom for _, custom in account.unproductive}
