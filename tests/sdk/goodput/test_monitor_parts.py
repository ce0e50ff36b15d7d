"""The parts of a monitor that need no process: its turns, its messages, what it is told."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.monitor.assignment import Assignment, assigned, line
from mldiagnostics.goodput.monitor.inbox import Inbox
from mldiagnostics.goodput.monitor.schedule import LONGEST_PAUSE_S, UploadSchedule
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
def test_turns_come_after_the_interval_and_later_and_later_while_they_fail(
    interval_s: float, turns: list[tuple[float, bool]]
) -> None:
    now = 0.0
    schedule = UploadSchedule(interval_s, now)
    assert schedule.due == interval_s
    pause_s = interval_s
    for took_s, well in turns:
        now = schedule.due + took_s
        schedule.took_turn(now, well=well)
        before, pause_s = pause_s, schedule.due - now
        if well:
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


def test_messages_come_in_order_however_they_are_cut(pipe: tuple[Inbox, int]) -> None:
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


def test_what_was_said_before_the_end_is_heard(pipe: tuple[Inbox, int]) -> None:
    inbox, theirs = pipe
    os.write(theirs, line({"do": "stop"}) + b'{"torn')
    os.close(theirs)
    assert inbox.next(10) == {"do": "stop"}
    with pytest.raises(EOFError):
        inbox.next(10)


def test_an_assignment_comes_through_a_line_as_it_is() -> None:
    sent = Assignment("job", "logger", "gs://b/log", "tb", exports=("otlp:", "jsonl:"), gcp={"project_id": None})
    assert Assignment.from_json(json.loads(line(sent.to_json()))) == sent


def test_an_assignment_says_what_constructor_and_environment_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLDIAG_GOODPUT_EXPORTS", "otlp:, prometheus::9464")
    monkeypatch.setenv("ML_GOODPUT_CACHE_DIR", "/cache")
    options = {**OPTIONS, "retention": timedelta(days=1), "gcp": GCPOptions(project_id="p")}
    made = assigned("a/b", "logger", **options)
    assert made.log == str(tmp_path / "mldiagnostics/goodput/logger" / made.log.rpartition("/")[2])
    assert made.tensorboard == str(tmp_path / "tb")
    assert (made.exports, made.cache_dir, made.retention_s) == (("otlp:", "prometheus::9464"), "/cache", 86_400.0)
    assert made.gcp["project_id"] == "p"


def test_what_the_program_says_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_GOODPUT_EXPORTS", "otlp:")
    options = {**OPTIONS, "exports": ["stdout:"], "tensorboard": "gs://bucket/tb", "retention": 60}
    made = assigned("job", "logger", **{**options, "log": "gs://bucket/log"})
    assert (made.exports, made.tensorboard, made.log) == (("stdout:",), "gs://bucket/tb", "gs://bucket/log")
    assert made.retention_s == 60


def test_copies_go_where_the_curves_are_if_that_is_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    made = assigned("job", "logger", **{**OPTIONS, "tensorboard": "gs://bucket/tb/", "copy_interval_s": 60})
    assert (made.copies, made.copy_interval_s) == ("gs://bucket/tb/goodput", 60)
    assert not assigned("job", "logger", **OPTIONS).copies
    assert assigned("job", "logger", **{**OPTIONS, "copy_interval_s": 0}).copy_interval_s == 0
    monkeypatch.setenv("ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS", "5")
    assert assigned("job", "logger", **OPTIONS).copy_interval_s == 5
    monkeypatch.setenv("ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS", "often")
    with pytest.raises(ConfigurationError, match="ML_GOODPUT_GCS_SYNC_INTERVAL_SECONDS=often"):
        assigned("job", "logger", **OPTIONS)


def test_a_retention_that_is_no_length_of_time_is_named() -> None:
    with pytest.raises(TypeError, match="'week': not a length of time"):
        assigned("job", "logger", **{**OPTIONS, "retention": "week"})


def test_not_to_wait_at_all_can_be_meant() -> None:
    assert assigned("job", "logger", **{**OPTIONS, "flush_s": 0}).flush_s == 0
    assert assigned("job", "logger", **{**OPTIONS, "flush_s": None}).flush_s is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flush_s", "soon"),
        ("interval_s", 0),
        ("interval_s", "30"),
        ("deviation_interval_s", float("nan")),
        ("ideal_step_time_s", -1),
        ("copy_interval_s", -1),
    ],
)
def test_what_cannot_be_meant_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match="is no number of seconds above 0"):
        assigned("job", "logger", **{**OPTIONS, name: value})
