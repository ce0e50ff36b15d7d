"""The account of a run that died without a recorded end stops at the run's last record, and says so."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.diagnostics import counts
from mldiagnostics.goodput.__main__ import main
from mldiagnostics.goodput.report import GoodputReport, from_json
from mldiagnostics.runs import list_runs, run_at
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

LATER_S = 4 * 3600.0

DIES = """
import os, signal, time
from mldiagnostics import machinelearning_run
run = machinelearning_run("job", log_system_metrics=False)
for step in range(20):
    run.step(step)
    time.sleep(0.02)
run.recording.flush(30)
while not os.path.exists(run.directory + "/run.json"): time.sleep(0.01)
"""
KILLED = DIES + "os.kill(os.getpid(), signal.SIGKILL)"
FAILED = DIES + "raise RuntimeError('out of memory')"
FINISHED = DIES


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def directory(programs: Programs) -> str:
    [row] = list_runs(programs.storage)
    return row.directory


def load_report(log: str, now: float, capsys: pytest.CaptureFixture[str]) -> tuple[GoodputReport, str]:
    """Return the report as of `now`, and the table."""
    main([log, "--now", str(now), "-o", "json"])
    report = from_json(json.loads(capsys.readouterr().out))
    main([log, "--now", str(now)])
    return report, capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "why"),
    [(KILLED, "Lost: no sign of life since "), (FAILED, "UncaughtException: RuntimeError: out of memory")],
)
@pytest.mark.parametrize("heartbeat_s", ["0.1", "3600"])
def test_a_run_that_died_does_not_go_on(
    source: str, why: str, heartbeat_s: str, programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.run(source, env={"MLDIAG_HEARTBEAT_SECONDS": heartbeat_s})
    died = time.time()
    report, table = load_report(directory(programs), died + LATER_S, capsys)
    assert report.stopped.startswith(why)
    assert report.ended is None
    assert report.now == report.cumulative.end <= died
    assert report.cumulative.last_step == 19  # also where the last heartbeat was long before
    assert "no end recorded, step 19" in table
    assert f"NOT RUNNING: {why}" in table


def test_a_run_that_is_not_lost_yet_goes_on(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.run(KILLED)
    row = run_at(directory(programs))
    assert row is not None
    assert row.heartbeat is not None
    now = row.heartbeat + 20  # less than three intervals
    report, table = load_report(row.directory, now, capsys)
    assert (report.stopped, report.cumulative.end) == ("", pytest.approx(now))
    assert "NOT RUNNING" not in table


def test_a_run_that_ended_well_has_its_end(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.run(FINISHED)
    report, table = load_report(directory(programs), time.time() + LATER_S, capsys)
    assert report.stopped == ""
    assert report.ended is not None
    assert "ended, step 19" in table


def test_what_is_not_the_directory_of_a_run_has_no_record_of_it(tmp_path: Path) -> None:
    before = counts()
    (tmp_path / "log.jsonl").write_text("")
    assert run_at(str(tmp_path)) is None
    assert run_at(str(tmp_path / "nothing")) is None
    assert run_at(str(tmp_path / "log.jsonl")) is None
    assert run_at("gs://bucket") is None
    assert run_at("/") is None
    assert counts() == before
