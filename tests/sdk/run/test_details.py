"""With the logger at DEBUG a start shows what it resolved, and no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import logging
from mldiagnostics import machinelearning_run
logging.basicConfig(level=logging.{level}, format="%(message)s")
run = machinelearning_run("job", configs={{"lr": 0.1, "hf_token": "hush"}}, sinks=["jsonl:"], log_system_metrics=False)
print(run.run_id, run.directory)
"""
ENVIRONMENT = {"MLDIAG_RUN_ID": "abc", "MLDIAG_RANK": "0", "MLDIAG_NODE_NAME": "n\x1b1", "OTHER": "unrelated",
               "OTEL_EXPORTER_OTLP_HEADERS": "authorization=hush"}  # fmt: skip


def test_a_start_shows_what_it_resolved(plain_path: Path) -> None:
    programs = Programs(plain_path)
    ended = programs.run(PROGRAM.format(level="DEBUG"), env=ENVIRONMENT)
    run_id, directory = ended.out.split()
    lines = {line.split(": ")[1]: line for line in ended.err.splitlines() if line.startswith("run start: ")}
    assert list(lines) == ["run", "identity", "arguments", "environment", "sinks", "control plane", "storage"]
    for extra in (f"run_id={run_id}", "name=job", "rank=0", "world_size=1", f"directory={directory}"):
        assert extra in lines["run"]
    assert "source=injected" in lines["identity"]
    assert '"lr":0.1' in lines["arguments"]
    assert "MLDIAG_RUN_ID=abc" in lines["environment"]
    assert r"MLDIAG_NODE_NAME=n\x1b1" in lines["environment"]
    assert "OTHER" not in lines["environment"]
    assert '["jsonl"]' in lines["sinks"]
    assert f"root={programs.storage}" in lines["storage"]
    assert "hush" not in ended.err


@pytest.mark.parametrize("level", ["INFO", "WARNING"])
def test_details_are_logged_at_debug_only(programs: Programs, level: str) -> None:
    assert "run start: " not in programs.run(PROGRAM.format(level=level)).err
