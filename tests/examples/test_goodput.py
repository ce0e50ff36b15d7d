"""Example: a training loop whose goodput is computed over its restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.examples import run_example

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.peers
def test_a_second_start_continues_the_same_account(tmp_path: Path) -> None:
    first = run_example("goodput/train.py", tmp_path, environment="orbax")
    assert first.out == "trained from step 0\n"
    losses = [float(str(value)) for _, value in first.series("loss")]
    assert losses[-1] < losses[0] / 2
    account = first.account()
    assert (account.max_step, account.disruptions, first.row.phase) == (39, 0, "Completed")
    assert {custom or bucket.name for bucket, custom in account.unproductive} >= {
        "DATA_LOADING_SYNC",
        "EVAL",
        "PROGRAM_STARTUP",
        "TRAINING_PREP",
        "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    }
    again = run_example("goodput/train.py", tmp_path, environment="orbax")
    assert again.out == "trained from step 40\n"
    whole = again.account()
    assert whole.max_step == 39
    assert whole.elapsed > account.elapsed
