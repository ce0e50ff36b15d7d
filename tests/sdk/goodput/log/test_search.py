"""A reader that knows only the names of job and logger finds the log, or says where it looked."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput import GoodputCalculator, GoodputRecorder, written_logs
from mldiagnostics.goodput.log.pointers import pointed, pointer_to
from mldiagnostics.goodput.log.search import locations, search_log
from support.goodput.logs import run_program

if TYPE_CHECKING:
    from pathlib import Path

JOB, LOGGER = "trainer", "goodput_trainer"
NO_STORAGE: dict[str, Any] = {"MLDIAG_STORAGE": "", "MLDIAG_GOODPUT_LOG": ""}
IN_A_RUN = """
from mldiagnostics import machinelearning_run
from mldiagnostics.goodput import GoodputRecorder
with machinelearning_run("run", gcs_path="{place}", log_system_metrics=False):
    recorder = GoodputRecorder("trainer", "goodput_trainer", logging_enabled=True)
    with recorder.job():
        for step in range(3):
            recorder.record_step_start_time(step)
"""
READ = """
from mldiagnostics.goodput import GoodputCalculator
print(GoodputCalculator("trainer", "goodput_trainer").get_job_goodput()[2])
"""


def written(log: Path) -> Path:
    recorder = GoodputRecorder(JOB, LOGGER, logging_enabled=True, log=log)
    recorder.record_job_start_time()
    recorder.close()
    written_logs.forget_written()  # as in another process
    return log


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a working directory that nothing was written to."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_a_log_in_the_storage_of_another_processs_run_is_found(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    assert run_program(IN_A_RUN.format(place=tmp_path / "storage"), tmp_path, **NO_STORAGE)[0] == ""
    assert run_program(READ, tmp_path, **NO_STORAGE) == ("2\n", "")


def test_a_log_in_the_bucket_of_another_processs_run_is_found(tmp_path: Path, gcs_bucket: str) -> None:
    emulator: dict[str, Any] = {"STORAGE_EMULATOR_HOST": os.environ["STORAGE_EMULATOR_HOST"], **NO_STORAGE}
    assert run_program(IN_A_RUN.format(place=f"gs://{gcs_bucket}/runs"), tmp_path, **emulator)[0] == ""
    assert run_program(READ, tmp_path, **emulator) == ("2\n", "")


def test_each_root_that_the_environment_names_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_GOODPUT_LOG", str(tmp_path / "logs"))
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path / "storage"))
    log = written(tmp_path / "storage/goodput" / LOGGER / JOB)
    assert search_log(JOB, LOGGER) == str(log)
    first = written(tmp_path / "logs" / LOGGER / JOB)
    assert search_log(JOB, LOGGER) == str(first)


def test_a_log_by_the_rule_comes_before_that_of_another_place(tmp_path: Path) -> None:
    mine = written(tmp_path / "here/mldiagnostics/goodput" / LOGGER / JOB)
    other = written(tmp_path / "other")
    assert [location.url for location in locations(JOB, LOGGER)] == [str(mine), str(other)]
    assert search_log(JOB, LOGGER) == str(mine)


def test_where_there_is_none_all_places_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path / "storage"))
    written(tmp_path / "storage/goodput/goodput_other/other")
    for file in written(tmp_path / "gone").glob("records/*"):
        file.unlink()
    with pytest.raises(LogUnreadable) as failed:
        GoodputCalculator(JOB, LOGGER).get_job_goodput()
    message = str(failed.value)
    assert message.startswith(f"job '{JOB}', logger '{LOGGER}': no goodput log at ")
    for place, known_by in (
        (f"{tmp_path}/storage/goodput/{LOGGER}/{JOB}", "MLDIAG_STORAGE"),
        (f"{tmp_path}/here/mldiagnostics/goodput/{LOGGER}/{JOB}", "the default"),
        (f"{tmp_path}/gone", "the last recorder of these names on this machine"),
    ):
        assert f"{place} ({known_by})" in message
    assert message.endswith(f"other logs there: {tmp_path}/storage/goodput/goodput_other/other")


def test_a_calculator_looks_again_with_each_query_until_there_is_a_log(tmp_path: Path) -> None:
    calculator = GoodputCalculator(JOB, LOGGER, cache_dir=tmp_path)
    with pytest.raises(LogUnreadable):
        calculator.get_job_goodput()
    written(tmp_path / "log")
    assert calculator.get_job_goodput()[2] == 0


def test_a_first_place_that_cannot_be_read_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "here/mldiagnostics/goodput" / LOGGER / JOB)
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path / ("x" * 300)))
    with pytest.raises(LogUnreadable, match="cannot read"):
        search_log(JOB, LOGGER)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"url": 3}', b"\xff"])
def test_a_pointer_that_is_not_one_is_ignored(tmp_path: Path, content: bytes) -> None:
    written(tmp_path / "log")
    assert pointed(JOB, LOGGER) == str(tmp_path / "log")
    pointer_to(JOB, LOGGER).write_bytes(content)
    assert pointed(JOB, LOGGER) is None


def test_a_pointer_that_others_can_write_is_ignored(tmp_path: Path) -> None:
    written(tmp_path / "log")
    file = pointer_to(JOB, LOGGER)
    assert json.loads(file.read_text()) == {"job_name": JOB, "logger_name": LOGGER, "url": str(tmp_path / "log")}
    file.chmod(0o666)
    assert pointed(JOB, LOGGER) is None
    file.chmod(0o600)
    file.parent.chmod(0o777)
    assert pointed(JOB, LOGGER) is None
