"""Example: data-parallel training with JAX, stopped as Kubernetes stops a pod."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import list_runs
from support.programs.examples import LIMIT_S, ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.peers
def test_a_process_that_is_stopped_fails_like_one_that_a_signal_ends(tmp_path: Path) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with subprocess.Popen(
        [sys.executable, str(ROOT / "examples/jax-training/train.py")],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(ROOT / "sdk/src"), "JAX_PLATFORMS": "cpu", "MLDIAG_PROFILER_PORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("step ") for line in process.stdout)
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 128 + signal.SIGTERM
        finally:
            process.kill()
    [row] = list_runs(str(tmp_path / "mldiagnostics"))
    assert (row.phase, row.reason) == ("Failed", "Terminated")
    assert row.step is not None
