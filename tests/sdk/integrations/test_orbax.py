"""The logger in a real Orbax: saves and restores are accounted for wherever the recorder writes, and nothing fails."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from support.programs.examples import python
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers

BEGIN = """
import logging, os, sys, time
import jax.numpy as jnp
import orbax.checkpoint as ocp
from mldiagnostics import goodput, machinelearning_run
from mldiagnostics.integrations.orbax import MLDiagnosticsLogger
"""
SAVE_AND_RESTORE = """
state = {"w": jnp.ones((64, 64))}
with ocp.CheckpointManager(os.path.abspath("checkpoints"), logger=logger) as manager:
    for step in (3, 7):
        before = time.time()
        manager.save(step, args=ocp.args.StandardSave(state))
        print("save", time.time() - before)
        manager.wait_until_finished()
    before = time.time()
    manager.restore(3, args=ocp.args.StandardRestore(state))
    print("restore", time.time() - before)
"""
SAVE, RESTORE = BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME, BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME
TOLERANCE_S = 0.05


def accounted(log: str) -> tuple[float, float]:
    """Seconds of saves and restores in a log."""
    history, now = History(), datetime.now(timezone.utc)
    open_log(log).read_new(history, now)
    moment = round(now.timestamp() * 1e6)
    spent = history.of(moment).account(moment).unproductive
    return spent.get(Bucket(SAVE), 0) / 1e6, spent.get(Bucket(RESTORE), 0) / 1e6


def run(programs: Programs, body: str) -> dict[str, float]:
    ended = programs.run(f"{BEGIN}{body}{SAVE_AND_RESTORE}", env={"JAX_PLATFORMS": "cpu"})
    assert ended.code == 0, ended.err
    took = {"save": 0.0, "restore": 0.0}
    for line in ended.out.splitlines():
        what, seconds = line.split()
        took[what] += float(seconds)
    return took


def test_checkpoints_go_into_the_log_of_a_recorder(tmp_path: Path) -> None:
    programs = Programs(tmp_path, python("orbax"))
    recorder = 'goodput.GoodputRecorder("job", "goodput_job", logging_enabled=True)'
    took = run(
        programs, f"recorder = {recorder}\nrecorder.record_job_start_time()\nlogger = MLDiagnosticsLogger(recorder)\n"
    )
    saved, restored = accounted(f"{programs.storage}/goodput/goodput_job/job")
    assert (saved, restored) == pytest.approx((took["save"], took["restore"]), abs=TOLERANCE_S)


def test_checkpoints_are_among_the_records_of_the_run(tmp_path: Path) -> None:
    programs = Programs(tmp_path, python("orbax"))
    took = run(programs, 'run = machinelearning_run("job", run_workload_id="job")\nlogger = MLDiagnosticsLogger()\n')
    saved, restored = accounted(f"{programs.storage}/job")
    assert saved == pytest.approx(took["save"], abs=TOLERANCE_S)
    assert 0 < restored < took["restore"] + TOLERANCE_S  # less what was compiled for it


def test_checkpoints_are_saved_without_a_run_and_with_odd_entries(tmp_path: Path) -> None:
    programs = Programs(tmp_path, python("orbax"))
    ended = programs.run(
        f"""{BEGIN}
logger = MLDiagnosticsLogger()
for _ in range(3):
    logger.log_entry({{"event_type": "save"}})
run = machinelearning_run("job", run_workload_id="job")
run.step(0)
for entry in ("text", None, 5, {{}}, {{"event_type": "save", "checkpoint_manager_blocking_start_time": None}},
              {{"event_type": "restore", "checkpoint_manager_duration_secs": "long"}}, {{1: object()}}):
    logger.log_entry(entry, severity="INFO")
run.step(1)
""",
        env={"JAX_PLATFORMS": "cpu"},
    )
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    assert ended.err.count("there is no run; start one") == 1
    assert accounted(f"{programs.storage}/job") == (0, 0)
