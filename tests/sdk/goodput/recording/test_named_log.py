"""A log as an object, which recorders and calculators of other makes pass around."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import goodput

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(timezone.utc)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    return goodput._CloudLogger("job", "goodput_job", max_logs_retention_period=None, background_batch_size=10)


def entry(job: str = "job", **more: Any) -> dict[str, Any]:
    return {"job_name": job, **more}


def test_what_is_written_is_read(log: Any) -> None:
    log.write_cloud_logging_entry(None)
    log.write_cloud_logging_entry(entry("another", job_start_time=NOW.timestamp()))
    log.write_cloud_logging_entry(entry(job_start_time=NOW.timestamp()))
    log.write_cloud_logging_entry(entry(step_count=0, step_start_time=NOW.timestamp() + 1))
    with pytest.raises(KeyError):
        log.write_cloud_logging_entry({"job_start_time": 3.0})
    log.flush()
    read, last = log.read_cloud_logging_entries()
    assert [set(payload) & {"job_start_time", "step_count"} for payload in read] == [{"job_start_time"}, {"step_count"}]
    assert log.job_start_time.timestamp() == pytest.approx(NOW.timestamp(), abs=1e-5)
    assert log.read_cloud_logging_entries(last_entry_info=last) == ([], (None, None))
    log.write_cloud_logging_entry(entry(step_count=1, step_start_time=NOW.timestamp() + 2))
    log.flush()
    assert [payload["step_count"] for payload in log.read_cloud_logging_entries(None, None, last)[0]] == [1]
    assert log.read_cloud_logging_entries(end_time=NOW - timedelta(hours=1))[0] == []


def test_a_named_log_has_the_attributes_of_the_peers(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "ours")
    assert (log.project_id, log.log_name, log.retention_period) == ("ours", "goodput_job", timedelta(days=7))
    assert log.job_start_time is None


def test_a_recorder_and_a_calculator_share_it(log: Any) -> None:
    now = datetime.now(timezone.utc)  # entries written later than the calculator's clock do not count yet
    recorder = goodput.GoodputRecorder("job", "goodput_job", logging_enabled=True, cloud_logger=log)
    recorder.record_job_start_time(now)
    recorder.record_step_start_time(0, now + timedelta(seconds=1))
    recorder.record_job_end_time(now + timedelta(seconds=4))
    recorder.flush()
    calculator = goodput.GoodputCalculator("job", "any", log, clock=lambda: now.timestamp() + 100)
    assert calculator.get_job_goodput() == (pytest.approx(75.0, abs=1e-3), {}, 0)
