"""Every surface shows the same facts of a run from files."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from mldiagnostics.goodput.render.words import duration, share_of
from mldiagnostics.identity.origin import Origin
from mldiagnostics.runs import list_runs
from mldiagnostics.spool.creation import create_directory
from mldiagnostics.store import open_store
from mldiagnostics.text.timestamps import posix_seconds
from support.programs.command_line import CommandLine
from support.programs.processes import Programs
from support.run_files import put_run
from support.run_histories import RUN, History, histories, write
from support.surfaces import document_of, facts_of, figures_of, surfaces_of, text_of

if TYPE_CHECKING:
    import pytest

TWO_RANKS = {"RUN_WORKLOAD_ID": "w", "NNODES": "2"}
PROGRAM = """
import os, signal, sys, time
from mldiagnostics import machinelearning_run
run = machinelearning_run("job", log_system_metrics=False)
for step in range(20):
    run.step(step)
    time.sleep(0.02)
if sys.argv[1:] == ["fail"]:
    raise ValueError("no data")
if sys.argv[1:] == ["kill"]:
    run.recording.flush(60)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_every_surface_agrees_on_any_history_at_any_moment(history: History) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), history, now=time.time())
        rows, shares = asyncio.run(surfaces_of(Path(folder), RUN))
        facts = {name: facts_of(row) for name, row in rows.items()}
        assert all(each == facts["get"] for each in facts.values()), facts
        assert_story(history, facts["get"])
        assert_texts(Path(folder), rows["get"])
    if facts["get"]["completionTime"] is not None:
        assert len(set(shares.values())) == 1, shares


def assert_story(history: History, shown: dict[str, Any]) -> None:
    """The facts are those of the history: the failure of any rank, the last end, the last step."""
    known = [process for rank, process in enumerate(history.last) if rank == 0 or not process.loses_records]
    phases = {history.phase_of(process) for process in known}
    assert shown["phase"] == ("Failed" if "Failed" in phases else "Active" if "Active" in phases else "Completed")
    assert (shown["completionTime"] is None) == ("Active" in phases)
    assert shown["attempt"] == len(history.attempts) - 1
    leader = history.last[0]
    if (step := history.seen_of(leader)[-1].step) is not None and not leader.clock_step_s + leader.loses_records:
        assert shown["progress"]["step"] == step


def assert_texts(storage: Path, row: dict[str, Any]) -> None:
    """The page of `mldiag runs get`, the table of `list` and the page about goodput show the row."""
    phase = f"{row['phase']} ({row['reason']})" if row["reason"] else row["phase"]
    lines = text_of(storage, "runs", "get", RUN).splitlines()
    assert f"phase       {phase}" in lines
    assert phase in text_of(storage, "runs", "list")
    if row["goodput"] is not None:
        figures = figures_of(text_of(storage, "goodput", RUN, "-o", "html"))
        [report] = document_of(storage, "goodput", RUN)
        if row["completionTime"] is None:
            assert posix_seconds(report["asOfTime"]) <= time.time()
            return
        assert figures["goodput"] == share_of(row["goodput"], 1)
        assert figures["elapsed"] == duration(report["cumulative"]["elapsedSeconds"])
        assert f"goodput     {share_of(row['goodput'])}" in lines


def test_a_failed_worker_fails_the_run_everywhere(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM, env={**TWO_RANKS, "NODE_RANK": "0"}).code == 0
    assert programs.run(PROGRAM, "fail", env={**TWO_RANKS, "NODE_RANK": "1"}).code == 1
    [run] = list_runs(programs.storage)
    rows, _ = asyncio.run(surfaces_of(Path(programs.storage), run.run_id))
    assert {(row["phase"], row["reason"], row["message"]) for row in rows.values()} == {
        ("Failed", "WorkerUncaughtException", run.message)
    }
    assert "no data" in run.message
    assert [row["runId"] for row in document_of(Path(programs.storage), "runs", "list", "--phase", "failed")] == [
        run.run_id
    ]


def test_a_killed_program_ends_with_its_last_record(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM, "kill", env={"MLDIAG_HEARTBEAT_SECONDS": "3600"}).code == -9
    [run] = list_runs(programs.storage, now=time.time() + 20_000)
    assert (run.phase, run.reason, run.step) == ("Failed", "Lost", 19)
    assert run.ended is not None
    assert run.started is not None
    assert run.ended - run.started > 0.3


def test_the_last_step_of_a_completed_run_is_done(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM).code == 0
    [run] = list_runs(programs.storage)
    [report] = document_of(Path(programs.storage), "goodput", run.run_id)
    assert (report["steps"]["done"], report["steps"]["count"], report["failure"]) == (20, 19, "")


def test_the_time_of_a_run_is_that_of_its_account(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM).code == 0
    [run] = list_runs(programs.storage)
    [report] = document_of(Path(programs.storage), "goodput", run.run_id)
    assert (report["started"], report["ended"]) == (round(run.started or 0, 6), round(run.ended or 0, 6))


def test_the_account_of_a_failed_run_has_its_failure(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM, "fail").code == 1
    [run] = list_runs(programs.storage)
    [report] = document_of(Path(programs.storage), "goodput", run.run_id)
    assert report["steps"]["done"] == 19, "the last step was interrupted"
    assert report["failure"].startswith("UncaughtException: ")
    mldiag = CommandLine(tmp_path)
    text = "\n".join(mldiag.lines("goodput", run.run_id, "-s", programs.storage))
    assert "19 done" in text
    assert "no failure" not in text
    assert "UncaughtException: " in text
    below = mldiag.run("goodput", "storage").err
    assert "1 log is below it" in below


def test_records_in_the_spool_and_drops_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    store = open_store(str(tmp_path / "mldiagnostics"))
    put_run(store, "abc", worldSize=1, drops={"buffer-full": 3}, complaints={"step": 1})
    origin = Origin(run_id="abc", name="job", storage=store.url(), incarnation="aaaaaaaa", host="h0")
    spool = create_directory(store.url(), origin)
    (spool.files / "abc/records").mkdir(parents=True)
    (spool.files / "abc/records/a0-r0-aaaaaaaa-00001.jsonl").write_text("{}\n")
    spool.release()
    shown = CommandLine(tmp_path, env={"MLDIAG_SPOOL": str(tmp_path / "spool")}).lines("runs", "get", "abc")
    assert "dropped     3 buffer-full" in shown
    assert "warnings    1 step" in shown
    assert any(line.startswith("waiting     1 file of this run waits") for line in shown)
