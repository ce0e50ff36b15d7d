"""Parts of a monitor without a process: schedule, messages, assignment."""

from __future__ import annotations

import json
import logging
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.monitor.assignment import DEVIATION, Assignment, assign, line
from mldiagnostics.goodput.monitor.inbox import Inbox
from mldiagnostics.goodput.monitor.schedule import LONGEST_PAUSE_S, UploadSchedule
from mldiagnostics.goodput.monitor.uploading import Uploaders
from mldiagnostics.goodput_utils import GCPOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPTIONS: dict[str, Any] = {
    "log": None,
    "tensorboard": "tb",
    "interval_s": 30,
    "deviation_interval_s": 10,
    "badput": False,
    "slices": False,
    "ideal_step_time_s": None,
    "retention": None,
    "cache_dir": "/tmp",
    "copy_interval_s": 3600,
    "flush_s": 10.0,
    "gcp": None,
    "exports": None,
}
INTERVALS = st.floats(0.01, 1e5)


@given(INTERVALS, st.lists(st.tuples(st.floats(0, 100), st.booleans())))
def test_uploads_follow_the_interval_with_back_off_while_they_fail(
    interval_s: float, turns: list[tuple[float, bool]]
) -> None:
    now = 0.0
    schedule = UploadSchedule(interval_s, now)
    assert schedule.due == interval_s
    pause_s = interval_s
    for took_s, success in turns:
        now = schedule.due + took_s
        schedule.record_result(now, success=success)
        before, pause_s = pause_s, schedule.due - now
        if success:
            assert pause_s == pytest.approx(interval_s, rel=1e-6, abs=1e-6)
        else:
            assert pause_s >= before - 1e-6
            assert pause_s <= max(interval_s, LONGEST_PAUSE_S) + 1e-6
            assert pause_s >= min(2 * before, LONGEST_PAUSE_S, max(interval_s, LONGEST_PAUSE_S)) - 1e-6


@pytest.fixture
def pipe() -> Iterator[tuple[Inbox, int]]:
    ours, theirs = os.pipe()
    yield Inbox(ours), theirs
    os.close(ours)


def test_messages_are_read_in_order_from_any_chunks(pipe: tuple[Inbox, int]) -> None:
    inbox, theirs = pipe
    sent = [{"number": number, "text": "ä\n" * number} for number in range(20)]
    data = b"".join(map(line, sent))
    for start in range(0, len(data), 7):
        os.write(theirs, data[start : start + 7])
    assert [inbox.next(10) for _ in sent] == sent
    assert inbox.next(0) is None
    os.close(theirs)
    with pytest.raises(EOFError):
        inbox.next(10)


def test_messages_before_the_end_are_read(pipe: tuple[Inbox, int]) -> None:
    inbox, theirs = pipe
    os.write(theirs, line({"do": "stop"}) + b'{"torn')
    os.close(theirs)
    assert inbox.next(10) == {"do": "stop"}
    with pytest.raises(EOFError):
        inbox.next(10)


def test_an_assignment_round_trips_through_a_line() -> None:
    sent = Assignment("job", "logger", "gs://b/log", "tb", exports=("otlp:", "jsonl:"), gcp={"project_id": None})
    assert Assignment.from_json(json.loads(line(sent.to_json()))) == sent


def test_an_assignment_has_the_arguments_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLDIAG_GOODPUT_EXPORTS", "otlp:, prometheus::9464")
    monkeypatch.setenv("ML_GOODPUT_CACHE_DIR", "/cache")
    options = {**OPTIONS, "retention": timedelta(days=1), "gcp": GCPOptions(project_id="p")}
    made = assign("a/b", "logger", **options)
    assert made.log == str(tmp_path / "mldiagnostics/goodput/logger" / made.log.rpartition("/")[2])
    assert made.tensorboard == str(tmp_path / "tb")
    assert (made.exports, made.cache_dir, made.retention_s) == (("otlp:", "prometheus::9464"), "/cache", 86_400.0)
    assert made.gcp["project_id"] == "p"


def test_arguments_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_GOODPUT_EXPORTS", "otlp:")
    options = {**OPTIONS, "exports": ["stdout:"], "tensorboard": "gs://bucket/tb", "retention": 60}
    made = assign("job", "logger", **{**options, "log": "gs://bucket/log"})
    assert (made.exports, made.tensorboard, made.log) == (("stdout:",), "gs://bucket/tb", "gs://bucket/log")
    assert made.retention_s == 60


def test_copies_are_beside_the_curves_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    made = assign("job", "logger", **{**OPTIONS, "tensorboard": "gs://bucket/tb/", "copy_interval_s": 60})
    assert (made.copies, made.copy_interval_s) == ("gs://bucket/tb/goodput", 60)
    assert not assign("job", "logger", **OPTIONS).copies
    monkeypatch.setenv("ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS", "5")
    assert assign("job", "logger", **{**OPTIONS, "tensorboard": "gs://bucket/tb/"}).copy_interval_s == 5


@pytest.mark.parametrize("interval_s", [0, -1, -0.5])
def test_an_interval_of_copies_up_to_0_means_every_save(interval_s: float) -> None:
    made = assign("job", "logger", **{**OPTIONS, "tensorboard": "gs://bucket/tb", "copy_interval_s": interval_s})
    assert made.copy_interval_s == 0


@pytest.mark.parametrize("interval_s", [None, "often", float("nan"), True])
def test_the_default_replaces_an_invalid_interval_of_copies(
    interval_s: object, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**OPTIONS, "copy_interval_s": interval_s}
    with caplog.at_level(logging.DEBUG, logger="mldiagnostics"):
        assert assign("job", "logger", **options).copy_interval_s == 3600
        assert not caplog.text  # no bucket, no copies
        assert assign("job", "logger", **{**options, "tensorboard": "gs://bucket/tb"}).copy_interval_s == 3600
    assert f"gcs_sync_interval_seconds={interval_s!r}: not a number of seconds" in caplog.text


def test_the_default_replaces_an_invalid_interval_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS", "often")
    with caplog.at_level(logging.DEBUG, logger="mldiagnostics"):
        assert assign("job", "logger", **{**OPTIONS, "tensorboard": "gs://bucket/tb"}).copy_interval_s == 3600
    assert "ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS=often: not a number of seconds" in caplog.text


@pytest.mark.parametrize("interval_s", [-1, 0, None, float("nan"), "30"])
def test_an_invalid_interval_of_step_deviations_is_a_problem_of_their_uploader(interval_s: object) -> None:
    made = assign("job", "logger", **{**OPTIONS, "deviation_interval_s": interval_s})
    assert made.deviation_interval_s == 10
    assert made.invalid == {
        DEVIATION: f"step_deviation_interval_seconds={interval_s!r}: not a number of seconds above 0; "
        "write, for example, 30"
    }
    assert Assignment.from_json(json.loads(line(made.to_json()))) == made
    uploaders = Uploaders(made)
    with pytest.raises(ConfigurationError, match="step_deviation_interval_seconds="):
        uploaders.start(DEVIATION)
    assert uploaders.pid is None


def test_an_invalid_retention_is_named() -> None:
    with pytest.raises(TypeError, match="'week': not a length of time"):
        assign("job", "logger", **{**OPTIONS, "retention": "week"})


def test_a_timeout_of_0_and_none_are_valid() -> None:
    assert assign("job", "logger", **{**OPTIONS, "flush_s": 0}).flush_s == 0
    assert assign("job", "logger", **{**OPTIONS, "flush_s": None}).flush_s is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flush_s", "soon"),
        ("interval_s", 0),
        ("interval_s", "30"),
        ("ideal_step_time_s", -1),
    ],
)
def test_invalid_numbers_are_named(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match="not a number of seconds above 0"):
        assign("job", "logger", **{**OPTIONS, name: value})
