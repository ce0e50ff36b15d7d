"""The callback in a real Hugging Face Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.examples import run_example

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers


def test_a_trainer_is_a_run(tmp_path: Path) -> None:
    example = run_example("huggingface/train.py", tmp_path, environment="trainers", HF_HUB_OFFLINE="1")
    row = example.row
    assert (row.name, row.run_group, row.phase, row.step) == ("bert", "examples", "Completed", 11)
    assert row.configs["software"]["framework"] == "PYTORCH"
    assert row.configs["user"]["training"]["max_steps"] == 12
    assert row.configs["user"]["model"]["hidden_size"] == 32
    assert [step for step, _ in example.series("step_time")] == list(range(12))
    for name in ("loss", "gradient_norm", "learning_rate"):
        assert [step for step, _ in example.series(name)] == [4, 8, 12]
    assert [step for step, _ in example.series("eval_loss")] == [6, 12, 12]
    assert example.series("grad_norm") == []
    assert "WARNING" not in example.err
    account = example.account()
    assert (account.max_step, account.disruptions) == (11, 0)
    assert {custom or bucket.name for bucket, custom in account.unproductive} >= {
        "EVAL",
        "DATA_LOADING_SYNC",
        "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    }
