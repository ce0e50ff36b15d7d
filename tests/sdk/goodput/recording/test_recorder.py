"""A recorder writes its calls to the log, under the peer's names; invalid arguments never stop the training."""

from __future__ import annotations

import enum
import inspect
import itertools
import logging
import pickle
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.goodput.events.conversion import PLAIN_KEYS
from mldiagnostics.goodput.events.event import EventCode, SliceCounts
from mldiagnostics.goodput.log import find_log, open_log
from mldiagnostics.goodput.recording.elastic_recorder import ElasticGoodputRecorder
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from support.goodput.logs import EventCollector, events_in, lines, recorded
from support.records import Hostile, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AT = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=timezone.utc)
US = 1_795_262_400_250_000


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[ElasticGoodputRecorder]:
    made = ElasticGoodputRecorder("job", "goodput_job", logging_enabled=True, log=tmp_path)
    yield made
    made.close()


def closed(recorder: GoodputRecorder, log: Path) -> EventCollector:
    recorder.close()
    return events_in(log)


class Entries:
    """An object for `cloud_logger=`, as programs pass it."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.flushes = 0

    def write_cloud_logging_entry(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)

    def flush(self) -> None:
        self.flushes += 1


def test_every_event_of_the_peer_is_in_the_log(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    recorder.record_job_start_time(AT)
    recorder.record_tpu_init_start_time(AT)
    recorder.record_tpu_init_end_time(AT)
    recorder.record_training_preparation_start_time(AT)
    recorder.record_training_preparation_end_time(AT)
    recorder.record_data_loading_start_time(AT)
    recorder.record_data_loading_end_time(AT)
    recorder.record_step_start_time(0, AT)
    recorder.record_custom_badput_event_start_time(AT, "eval")
    recorder.record_custom_badput_event_end_time(AT, custom_badput_event_type="eval")
    recorder.record_checkpoint_progress(0, AT)
    recorder.record_elastic_slice_counts(1, 4, 3, AT)
    recorder.record_elastic_wait_start_time("elastic_scale_up", AT)
    recorder.record_elastic_wait_end_time("elastic_slice_down", AT)
    recorder.record_elastic_reinit_start_time(AT)
    recorder.record_elastic_reinit_end_time(AT)
    recorder.record_job_end_time(AT)
    collected = closed(recorder, tmp_path)
    assert sorted(collected.pairs, key=repr) == sorted(
        [
            *((code, 0) for key, code in PLAIN_KEYS.items() if "program" not in key),
            *((EventCode.STEP_START, 0), (EventCode.CUSTOM_START, "EVAL"), (EventCode.CUSTOM_END, "EVAL")),
            *((EventCode.SLICES, SliceCounts(1, 4, 3)), (EventCode.SCALE_UP_START, 0), (EventCode.SLICE_DOWN_END, 0)),
        ],
        key=repr,
    )
    assert {event.t for event in collected.events} == {US}


def test_our_events_are_in_the_log_too(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    recorder.record_step_end_time(3)
    recorder.record_checkpoint_save_start_time(3)
    recorder.record_checkpoint_save_end_time()
    recorder.record_checkpoint_restore_start_time(start_time=AT)
    recorder.record_checkpoint_restore_end_time(4, AT)
    recorder.record_program_startup_start_time()
    recorder.record_program_startup_end_time()
    recorder.record_disruption("preemption")
    entry = {"event_type": "save", "step": 5, "directory": "gs://b", "synchronous": None}
    times = {"checkpoint_manager_blocking_start_time": 2e9, "checkpoint_manager_blocking_duration_secs": 1.5}
    recorder.record_entry({**entry, **times, "job_name": "another"})
    collected = closed(recorder, tmp_path)
    assert set(collected.pairs) >= {
        (EventCode.STEP_END, 3), (EventCode.SAVE_START, 3), (EventCode.SAVE_END, -1), (EventCode.RESTORE_START, -1),
        (EventCode.RESTORE_END, 4), (EventCode.STARTUP_START, 0), (EventCode.STARTUP_END, 0),
        (EventCode.CAUSE, "preemption"),
        (EventCode.SAVED, (2_000_000_001_500_000, 5, "persistent")),
    }  # fmt: skip
    assert {record.payload["job_name"] for record in recorded(tmp_path) if record.payload} == {"job"}


def test_blocks_are_recorded_by_their_start_and_end(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    with recorder.job():
        with recorder.tpu_init(), recorder.program_startup():
            pass
        with recorder.training_preparation(), recorder.checkpoint_restore(7), recorder.data_loading():
            pass
        with recorder.step(8):
            pass
        with recorder.event("eval"), recorder.checkpoint_save():
            pass
        with recorder.elastic_wait("scale_up"), recorder.elastic_reinit():
            pass
    collected = [event.code for event in sorted(closed(recorder, tmp_path).events, key=lambda event: event.t)]
    assert sorted(collected) == sorted(
        {EventCode(code) for code in range(24)} - {EventCode.SLICE_DOWN_START, EventCode.SLICE_DOWN_END}
    )


def test_what_an_exception_leaves_is_not_done(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), recorder.job(), recorder.step(1), recorder.event("eval"):
        raise ZeroDivisionError
    collected = {event.code for event in closed(recorder, tmp_path).events}
    assert collected == {EventCode.JOB_START, EventCode.STEP_START, EventCode.CUSTOM_START, EventCode.CUSTOM_END}


def test_each_record_names_its_process(
    recorder: ElasticGoodputRecorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLDIAG_RANK", "3")
    monkeypatch.setenv("MLDIAG_ATTEMPT", "2")
    monkeypatch.setenv("MLDIAG_RUN_ID", "f" * 64)
    for step in range(3):
        recorder.record_step_start_time(step, AT)
    collected = closed(recorder, tmp_path)
    assert {(event.rank, event.run) for event in collected.events} == {(3, "f" * 64)}
    records = recorded(tmp_path)
    assert {(record.kind, record.name, record.rank, record.attempt) for record in records} == {
        ("event", "goodput", 3, 2)
    }
    assert len({record.payload["event_id"] for record in records if record.payload}) == 3
    [line] = [line for line in lines(tmp_path) if b'"step_count":2' in line]
    assert b'"payload":{"job_name":"job","step_count":2,"step_start_time":1795262400.25,"event_id":"' in line


def test_an_id_that_a_restart_would_not_find_again_is_none(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    recorder.record_job_start_time()
    assert {event.run for event in closed(recorder, tmp_path).events} == {""}


@pytest.mark.parametrize(
    ("moment", "us"),
    [
        (datetime(2026, 11, 21, 14, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2))), US),
        (datetime.fromtimestamp(US / 1e6), US),  # noqa: DTZ006 - naive is local
        (US / 1e6, US),
        (2_000_000_000, 2_000_000_000_000_000),
    ],
)
def test_moments_are_datetimes_or_posix_seconds(
    recorder: ElasticGoodputRecorder, tmp_path: Path, moment: Any, us: int
) -> None:
    recorder.record_job_start_time(moment)
    assert [event.t for event in closed(recorder, tmp_path).events] == [us]


def test_what_is_no_moment_is_dropped_and_counted(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    before = diagnostics.counts().get("goodput-time", 0)
    early, late = datetime(1, 1, 1), datetime(9999, 1, 1, tzinfo=timezone.utc)  # noqa: DTZ001 - naive ones can be too early

    class Odd(datetime):
        def timestamp(self) -> Any:
            return "now"

    moments: list[Any] = [Odd(2026, 1, 1), "now", float("nan"), -1, 1e18, 10**400, True, Hostile(), [], early, late]
    for moment in moments:
        recorder.record_job_start_time(moment)
        recorder.record_step_start_time(1, moment)
    recorder.record_job_end_time()
    assert closed(recorder, tmp_path).pairs == [(EventCode.JOB_END, 0)]
    assert diagnostics.counts()["goodput-time"] == before + 2 * len(moments)


def test_what_is_no_step_is_dropped(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    steps: list[Any] = [None, "3", -1, 2**31, float("nan"), float("inf"), Hostile(), {}, [1, 2], object()]
    for step in steps:
        recorder.record_step_start_time(step)
        recorder.record_step_end_time(step)
    recorder.record_job_end_time()
    assert closed(recorder, tmp_path).pairs == [(EventCode.JOB_END, 0)]


def test_steps_of_other_makes_are_read_later(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    recorder.record_step_start_time(numpy.int64(1))
    recorder.record_step_start_time(numpy.array([2], dtype="uint32"))
    recorder.record_step_start_time(3.0)
    assert sorted(closed(recorder, tmp_path).steps()) == [1, 2, 3]


def test_steps_that_are_donated_to_their_training_step_are_recorded(
    recorder: ElasticGoodputRecorder, tmp_path: Path
) -> None:
    jax = pytest.importorskip("jax")
    train = jax.jit(lambda state, step: (state @ state / 1000, step + 1), donate_argnums=(0, 1))
    state, step = jax.numpy.ones((800, 800)), jax.numpy.int32(0)
    for _ in range(5):
        recorder.record_step_start_time(step)
        before = step
        state, step = train(state, step)
        assert before.is_deleted()
    assert sorted(closed(recorder, tmp_path).steps()) == list(range(5))


def test_a_deleted_step_loses_only_itself(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    step = jax.numpy.int32(1)
    step.delete()  # whose is_ready() ends the process
    recorder.record_step_start_time(step)
    recorder.record_step_start_time(2)
    assert closed(recorder, tmp_path).steps() == [2]


def test_a_step_inside_jit_is_dropped(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")

    def train(step: Any) -> Any:
        recorder.record_step_start_time(step)
        return step

    jax.jit(train)(3)
    recorder.record_step_start_time(jax.numpy.array([4]))
    assert closed(recorder, tmp_path).steps() == [4]


def test_hostile_texts_and_counts_lose_only_themselves(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    for thing in (Hostile(), None, 7, "\ud800", "x" * 10_000):
        recorder.record_custom_badput_event_start_time(custom_badput_event_type=thing)  # type: ignore[arg-type]
        recorder.record_elastic_wait_start_time(thing)  # type: ignore[arg-type]
        recorder.record_elastic_slice_counts(thing, 1, 1)  # type: ignore[arg-type]
        recorder.record_disruption(thing)  # type: ignore[arg-type]
        recorder.record_entry(thing)  # type: ignore[arg-type]
    recorder.record_job_end_time()
    assert closed(recorder, tmp_path).pairs.count((EventCode.JOB_END, 0)) == 1


def test_a_recorder_that_is_off_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entries = Entries()
    recorder = ElasticGoodputRecorder("job", "goodput_job", cloud_logger=entries, log=tmp_path / "log")
    calls = [getattr(recorder, name) for name in dir(recorder) if name.startswith("record_")]
    assert len(calls) > 20
    for call in calls:
        needed = [each for each in inspect.signature(call).parameters.values() if each.default is each.empty]
        assert call(*[Hostile() for _ in needed]) is None
    with recorder.job(), recorder.step(1):
        recorder.flush()
    recorder.close()
    assert pickle.dumps(GoodputRecorder("job", "goodput_job"))
    assert not entries.entries
    assert not list(tmp_path.iterdir())


def test_nothing_is_made_before_the_first_event(tmp_path: Path) -> None:
    threads = threading.active_count()
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True, log=tmp_path / "log")
    recorder.flush()
    recorder.close()
    assert threading.active_count() == threads
    assert not list(tmp_path.iterdir())


def test_a_recorder_goes_on_after_it_was_closed(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    for step in range(3):
        recorder.record_step_start_time(step)
        recorder.close()
    assert len(list(tmp_path.glob("records/*.jsonl"))) == 3
    assert sorted(events_in(tmp_path).steps()) == [0, 1, 2]


def test_what_is_recorded_while_it_is_closed_is_in_the_next_log(
    recorder: ElasticGoodputRecorder, tmp_path: Path
) -> None:
    closing = threading.Event()

    def train() -> None:
        while not closing.is_set():
            recorder.record_step_start_time(next(steps))
            time.sleep(0.0005)

    steps = itertools.count()
    trainer = threading.Thread(target=train)
    trainer.start()
    try:
        for files in range(1, 11):
            eventually(lambda files=files: len(list(tmp_path.glob("records/*"))) == files, "a log has begun")
            recorder.close()
    finally:
        closing.set()
        trainer.join()
    assert sorted(closed(recorder, tmp_path).steps()) == list(range(next(steps)))


@pytest.mark.parametrize("moment", [None, AT])
def test_an_event_of_a_thread_that_close_overtakes_is_in_the_next_log(
    recorder: ElasticGoodputRecorder, tmp_path: Path, moment: datetime | None
) -> None:
    recorder.record_step_start_time(0)
    buffer = recorder._writer._buffer
    append = buffer.append

    def close_first(entry: object) -> None:
        buffer.append = append
        recorder.close()
        append(entry)

    buffer.append = close_first
    recorder.record_step_start_time(1, moment)
    assert sorted(closed(recorder, tmp_path).steps()) == [0, 1]


def test_names_may_be_members_of_an_enum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Names(str, enum.Enum):
        JOB = "job"
        EVENT = "eval"

    monkeypatch.setenv("MLDIAG_GOODPUT_LOG", str(tmp_path))
    recorder = GoodputRecorder(Names.JOB, Names.JOB, logging_enabled=True)
    recorder.record_custom_badput_event_start_time(custom_badput_event_type=Names.EVENT)
    recorder.close()
    assert find_log(Names.JOB, Names.JOB) == find_log("job", "job") == f"{tmp_path}/job/job"
    assert events_in(open_log(tmp_path / "job/job", job_name="job")).pairs == [(EventCode.CUSTOM_START, "EVAL")]


def test_flush_puts_all_into_the_log(recorder: ElasticGoodputRecorder, tmp_path: Path) -> None:
    for step in range(1000):
        recorder.record_step_start_time(step)
    recorder.flush()
    assert events_in(tmp_path).steps() == list(range(1000))


@pytest.mark.parametrize("log", ["ftp://host/log", "gs://", "cloud-logging:ftp://host", 7, Hostile])
def test_a_log_that_cannot_be_costs_the_events_and_nothing_else(log: Any) -> None:
    before = diagnostics.counts().get("goodput-log", 0)
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True, log=log() if log is Hostile else log)
    recorder.record_job_start_time()
    recorder.record_step_start_time(1)
    recorder.flush()
    recorder.close()
    assert diagnostics.counts()["goodput-log"] == before + 2


def test_an_object_gets_what_the_peer_writes_at_once() -> None:
    entries = Entries()
    recorder = ElasticGoodputRecorder("job", "goodput_job", logging_enabled=True, cloud_logger=entries)
    recorder.record_job_start_time(AT)
    recorder.record_step_start_time(3, AT)
    recorder.record_custom_badput_event_start_time(AT, "eval")
    recorder.record_elastic_slice_counts(1, 2, 2, AT)
    t = US / 1e6
    assert entries.entries == [
        {"job_name": "job", "job_start_time": t},
        {"job_name": "job", "step_count": 3, "step_start_time": t},
        {"job_name": "job", "custom_badput_event_type": "eval", "custom_badput_event_start_time": t},
        {
            "job_name": "job",
            "active_slices": 1,
            "total_slices": 2,
            "available_slices": 2,
            "elastic_slice_counts_timestamp": t,
        },
    ]
    recorder.flush()
    recorder.close()
    assert entries.flushes == 2


def test_an_object_that_fails_costs_only_the_event() -> None:
    before = diagnostics.counts().get("goodput-writer", 0)
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True, cloud_logger=Hostile())
    recorder.record_job_start_time()
    recorder.record_step_start_time("no step")
    recorder.flush()
    assert diagnostics.counts()["goodput-writer"] == before + 2


@pytest.mark.parametrize("count", [10**5000, -(10**5000), 2**63, 10**30], ids=["huge", "huge below 0", "2^63", "10^30"])
def test_a_count_that_no_line_can_hold_loses_only_itself(
    recorder: ElasticGoodputRecorder, tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mldiagnostics")
    recorder.record_job_start_time(AT)
    recorder.record_elastic_slice_counts(count, 4, 4)
    recorder.record_entry({"job_name": "job", "step_count": 7, "step_start_time": AT.timestamp() + 50, "odd": count})
    for step in range(6):
        recorder.record_step_start_time(step, AT + timedelta(seconds=1 + step))
    recorder.record_job_end_time(AT + timedelta(seconds=9))
    log = closed(recorder, tmp_path)
    assert sorted(log.steps()) == [*range(6), 7]
    assert [code for code, _ in log.pairs if code in (EventCode.JOB_START, EventCode.JOB_END, EventCode.SLICES)] == [
        EventCode.JOB_START,
        EventCode.JOB_END,
    ]
    [gap] = [record for record in recorded(tmp_path) if record.kind == "drop"]
    assert (gap.name, gap.value) == ("bad-value", 1.0)
    assert "dropped 1 record, bad-value (goodput: active_slices with" in caplog.text


def test_a_text_is_cut_where_readers_stop(
    recorder: ElasticGoodputRecorder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mldiagnostics")
    long = "e" * 5_000_000
    with recorder.event(long):
        recorder.record_disruption(long)
    with recorder.elastic_wait(long):
        pass
    log = closed(recorder, tmp_path)
    assert [arg for code, arg in log.pairs if code in (EventCode.CUSTOM_START, EventCode.CUSTOM_END)] == ["E" * 200] * 2
    assert (EventCode.CAUSE, "e" * 200) in log.pairs
    assert not log.ignored
    assert max(map(len, lines(tmp_path))) < 1000
    assert "5000000 characters; only the first 200 are recorded" in caplog.text


@pytest.mark.parametrize("names", [("j" * 1001, "logger"), ("job", "l" * 1001)], ids=["job", "logger"])
def test_names_that_are_too_long_record_nothing_and_say_so(
    tmp_path: Path, names: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mldiagnostics")
    recorder = GoodputRecorder(*names, logging_enabled=True, log=tmp_path / "log")
    recorder.record_job_start_time()
    recorder.record_step_start_time(1)
    recorder.close()
    assert not (tmp_path / "log").exists()
    assert "has 1001 characters, nothing is recorded; pass at most 1000" in caplog.text
