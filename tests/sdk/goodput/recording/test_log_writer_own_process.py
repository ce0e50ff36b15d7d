"""A calculator in the process of a recorder answers with all that was recorded before, flushed or not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput import GoodputCalculator, GoodputRecorder, written_logs
from mldiagnostics.goodput.log.payloads import read_payloads
from mldiagnostics.goodput.recording import log_writer
from mldiagnostics.goodput.recording.named_log import NamedLog
from mldiagnostics.store import open_store
from support.goodput.logs import run_program

if TYPE_CHECKING:
    from pathlib import Path

T = time.time() - 100
ENDLESS_S = 3600.0  # a query that waited for it would end at the test's time limit


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_logs, "OWN_FLUSH_TIMEOUT_S", 60.0)


def record(log: str | Path | None = None, *, steps: int = 3) -> GoodputRecorder:
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True, log=log)
    recorder.record_job_start_time(T)
    for step in range(steps):
        recorder.record_step_start_time(step, T + 10 * step)
    recorder.record_job_end_time(T + 10 * steps)
    return recorder


def test_a_seed_script_needs_no_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    calculator = GoodputCalculator("job", "goodput_job", cache_dir=tmp_path)
    recorder = record()
    assert calculator.get_job_goodput()[0] == pytest.approx(100)
    assert calculator.get_job_goodput()[2] == 2
    recorder.record_step_start_time(3, T + 25)
    assert calculator.get_job_goodput()[2] == 3
    assert len(read_payloads("job", "goodput_job")) == 6


def test_a_log_whose_recorder_is_gone_needs_no_flush(tmp_path: Path) -> None:
    record(tmp_path / "log")
    assert GoodputCalculator("job", "goodput_job", cache_dir=tmp_path).get_job_goodput()[2] == 2


def test_a_log_in_a_bucket_needs_no_flush(gcs_bucket: str, tmp_path: Path) -> None:
    assert not list(open_store(f"gs://{gcs_bucket}/log").list(""))  # imports the client: seconds on a loaded machine
    recorder = record(f"gs://{gcs_bucket}/log")
    assert GoodputCalculator("job", "goodput_job", cache_dir=tmp_path).get_job_goodput()[2] == 2
    recorder.close()


def test_an_object_with_the_peers_name_reads_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    log = NamedLog("job", "goodput_job")
    for key in ("job_start_time", "job_end_time"):
        log.write_cloud_logging_entry({"job_name": "job", key: T})
    assert len(log.read_cloud_logging_entries()[0]) == 2


def test_the_log_of_a_run_has_its_steps(tmp_path: Path) -> None:
    body = """
from mldiagnostics import machinelearning_run
from mldiagnostics.goodput import GoodputCalculator, written_logs
written_logs.OWN_FLUSH_TIMEOUT_S = 60
run = machinelearning_run("run", log_system_metrics=False)
for step in range(5):
    run.step(step)
print(GoodputCalculator("run", "any", log=run.directory).get_job_goodput()[2])
"""
    assert run_program(body, tmp_path)[0] == "3\n"  # the fifth still runs


def test_a_log_that_cannot_be_written_delays_a_query_no_longer_than_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_logs, "OWN_FLUSH_TIMEOUT_S", 0.2)
    (tmp_path / "file").write_text("")
    recorder = record(tmp_path / "file/log")
    monkeypatch.setattr(log_writer, "FLUSH_TIMEOUT_S", ENDLESS_S)
    with pytest.raises(ValueError, match="file/log"):
        GoodputCalculator("job", "goodput_job", cache_dir=tmp_path).get_job_goodput()
    (tmp_path / "file").unlink()
    recorder.close()


def test_a_query_in_a_signal_handler_that_interrupts_a_recorder_returns(tmp_path: Path) -> None:
    body = """
import signal, threading
from mldiagnostics.goodput import GoodputCalculator, written_logs
recorder = begin()
recorder.record_job_start_time()
calculator = GoodputCalculator("job", "goodput_job")
answers = []
def answer(*_):
    answers.append(calculator.get_job_goodput()[2])
    signal.setitimer(signal.ITIMER_REAL, 0.01)  # after the answer: handlers that interrupt each other end in any order
signal.signal(signal.SIGALRM, answer)
signal.setitimer(signal.ITIMER_REAL, 0.01)
others = [threading.Thread(target=lambda: [calculator.get_job_goodput() for _ in range(20)]) for _ in range(3)]
for other in others:
    other.start()
step = 0
while len(answers) < 20:
    recorder.record_step_start_time(step)
    time.sleep(0.0005)
    step += 1
signal.setitimer(signal.ITIMER_REAL, 0)
for other in others:
    other.join()
written_logs.OWN_FLUSH_TIMEOUT_S = 60  # a handler may interrupt a thread that the flush waits for
print(answers == sorted(answers), calculator.get_job_goodput()[2] == step - 2)
"""
    assert run_program(body, tmp_path) == ("True True\n", "")
