"""The ways in which MaxText and AXLearn record: the order and names of their calls, and their queries."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import goodput, goodput_elastic, monitoring
from mldiagnostics.goodput import BadputType
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "llama/2026 é"
LOAD_S, STEP_S, DISPATCH_S = 0.5, 2.0, 0.01
INTERVAL_S = LOAD_S + STEP_S
# A step's block ends at dispatch: only that much of the last step of an attempt is known to be done.


class Clock:
    """The clock of a host on which time passes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.begin = 1_790_000_000.0
        monkeypatch.setattr("mldiagnostics.goodput.recording.log_writer.time", self)
        monkeypatch.setattr("mldiagnostics.goodput.recording.arguments.time", self)

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture(autouse=True)
def storage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    return tmp_path


@contextmanager
def recorded(recorder: Any, event: str, *arguments: Any) -> Iterator[None]:
    """As MaxText: the start, if there is a method for it, and the end unless the block fails."""
    if start := getattr(recorder, f"record_{event}_start_time", None):
        start(*arguments)
    yield
    if end := getattr(recorder, f"record_{event}_end_time", None):
        end(*arguments)


def prepare(recorder: Any, clock: Clock, *, compile_s: float = 30.0) -> None:
    with recorded(recorder, "tpu_init"):
        clock.passes(10)
    with recorded(recorder, "training_preparation"):
        clock.passes(20)
    clock.passes(compile_s)


def train(recorder: Any, clock: Clock, *steps: int) -> None:
    for step in steps:
        with recorded(recorder, "data_loading"):
            clock.passes(LOAD_S)
        with recorded(recorder, "step", step):
            clock.passes(DISPATCH_S)
        clock.passes(STEP_S - DISPATCH_S)


def recorder_of_maxtext(process: int = 0) -> goodput.GoodputRecorder:
    return goodput.GoodputRecorder(RUN, f"goodput_{RUN}", process == 0)


def answers(recorder: goodput.GoodputRecorder, clock: Clock, **arguments: Any) -> dict[str, Any]:
    """Return the job's account in seconds, from a process that has only the two names."""
    recorder.flush()
    calculator = goodput.GoodputCalculator(RUN, f"goodput_{RUN}", clock=clock, **arguments)
    percent, breakdown, step = calculator.get_job_goodput(include_badput_breakdown=True)
    details = calculator.get_job_goodput_details()
    elapsed = details["total_elapsed_time"]
    badput = {bucket.name: seconds for bucket, seconds in details["badput_time"].items() if seconds}
    assert sum(
        value for key, value in breakdown.items() if isinstance(value, float) and key.name != "DATA_LOADING_ASYNC"
    ) == pytest.approx(100 - percent)
    return {
        "": percent * elapsed / 100,
        "elapsed": elapsed,
        "step": step,
        "lost": details["disruption_count"],
        **badput,
    }


def test_a_job_that_ends_well(clock: Clock) -> None:
    recorder = recorder_of_maxtext()
    with recorded(recorder, "job"):
        prepare(recorder, clock)
        train(recorder, clock, *range(10))
    assert answers(recorder, clock) == pytest.approx(
        {
            "": 9 * INTERVAL_S + STEP_S,
            "elapsed": 60 + 10 * INTERVAL_S,
            "step": 9,
            "lost": 0,
            "TPU_INITIALIZATION": 10,
            "TRAINING_PREP": 20,
            "OTHER": 30,
            "DATA_LOADING_SYNC": LOAD_S,
            "DATA_LOADING_ASYNC": 9 * LOAD_S,
        }
    )


def test_a_job_that_is_killed_and_resumed(clock: Clock) -> None:
    first = recorder_of_maxtext()
    first.record_job_start_time()
    prepare(first, clock)
    train(first, clock, *range(8))
    first.flush()
    clock.passes(90)
    second = recorder_of_maxtext()
    with recorded(second, "job"):
        prepare(second, clock)
        train(second, clock, *range(5, 10))
    assert answers(second, clock) == pytest.approx(
        {
            "": 9 * INTERVAL_S + STEP_S,
            "elapsed": 2 * 60 + 13 * INTERVAL_S + 90,
            "step": 9,
            "lost": 1,
            "TPU_INITIALIZATION": 20,
            "TRAINING_PREP": 40,
            "OTHER": 60,
            "DATA_LOADING_SYNC": 2 * LOAD_S,
            "DATA_LOADING_ASYNC": 11 * LOAD_S,
            "WASTED_PROGRESS_FROM_DISRUPTION": 2 * INTERVAL_S + DISPATCH_S,
            "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": STEP_S - DISPATCH_S + 90,
        }
    )


def test_what_fails_has_no_end(clock: Clock) -> None:
    recorder = recorder_of_maxtext()

    def run() -> None:
        with recorded(recorder, "job"):
            prepare(recorder, clock)
            train(recorder, clock, 0, 1, 2)
            with recorded(recorder, "data_loading"):
                raise OSError("no more data")

    with pytest.raises(OSError, match="no more data"):
        run()
    clock.passes(50)
    results = answers(recorder, clock)
    assert (results["step"], results["elapsed"]) == pytest.approx((2, 60 + 3 * INTERVAL_S + 50))
    assert results[""] == pytest.approx(2 * INTERVAL_S + DISPATCH_S)


def test_a_job_that_blocks_after_a_recorded_step_end_is_a_suspected_hang(clock: Clock) -> None:
    recorder = recorder_of_maxtext()
    recorder.record_job_start_time()
    prepare(recorder, clock)
    train(recorder, clock, *range(20))
    recorder.flush()
    calculator = goodput.GoodputCalculator(RUN, f"goodput_{RUN}", clock=clock)
    assert not calculator.report().hang.suspected
    clock.passes(5000)
    hang = calculator.report().hang
    assert (hang.suspected, hang.step) == (True, 19)
    assert hang.age_s == pytest.approx(5000 + STEP_S - DISPATCH_S)
    recorder.record_job_end_time()
    recorder.flush()
    assert calculator.report().hang.step is None


def test_an_elastic_job(clock: Clock) -> None:
    recorder = goodput_elastic.ElasticGoodputRecorder(RUN, f"goodput_{RUN}", logging_enabled=True)
    recorder.record_job_start_time()
    recorder.record_elastic_slice_counts(2, 2, 2)
    prepare(recorder, clock)
    train(recorder, clock, *range(6))
    recorder.record_elastic_wait_start_time("elastic_slice_down")
    recorder.record_elastic_slice_counts(0, 2, 1)
    clock.passes(100)
    recorder.record_elastic_wait_end_time("elastic_slice_down")
    recorder.record_elastic_reinit_start_time()
    recorder.record_elastic_slice_counts(1, 2, 1)
    prepare(recorder, clock)
    recorder.record_elastic_reinit_end_time()
    train(recorder, clock, *range(4, 8))
    recorder.record_job_end_time()
    recorder.flush()
    calculator = goodput_elastic.ElasticGoodputCalculator(RUN, f"goodput_{RUN}", clock=clock)
    calculator.get_job_goodput()
    details = calculator.get_job_goodput_details()
    assert {bucket: seconds for bucket, seconds in details["badput_time"].items() if seconds} == pytest.approx(
        {
            BadputType.TPU_INITIALIZATION: 10,
            BadputType.TRAINING_PREP: 20,
            BadputType.OTHER: 30,
            BadputType.ELASTIC_SLICE_DOWN: 100,
            BadputType.ELASTIC_REINITIALIZATION: 60,
            BadputType.DATA_LOADING_SYNC: 2 * LOAD_S,
            BadputType.DATA_LOADING_ASYNC: 8 * LOAD_S,
            BadputType.WASTED_PROGRESS_FROM_DISRUPTION: INTERVAL_S + DISPATCH_S,
            BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION: STEP_S - DISPATCH_S,
        }
    )
    before, down, after = 60 + 6 * INTERVAL_S, 100, 60 + 4 * INTERVAL_S
    elapsed = before + down + after
    assert details["stepping_slice_efficiency"] == pytest.approx((before + after / 2) / elapsed)
    assert details["available_slice_efficiency"] == pytest.approx((before + (down + after) / 2) / elapsed)


def monitor_without_deviations(folder: Path, **more: Any) -> monitoring.GoodputMonitor:
    """Return a monitor of the run that writes goodput to TensorBoard, as the peers' programs make it."""
    return monitoring.GoodputMonitor(
        job_name=RUN,
        logger_name=f"goodput_{RUN}",
        tensorboard_dir=str(folder / "tensorboard"),
        upload_interval=30,
        monitoring_enabled=True,
        include_badput_breakdown=True,
        include_step_deviation=False,
        gcp_options=monitoring.GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False),
        **more,
    )


def test_maxtexts_monitor_shows_what_the_calculator_says(clock: Clock, tmp_path: Path) -> None:
    recorder = recorder_of_maxtext()
    monitor = monitor_without_deviations(tmp_path, pathway_enabled=False, step_deviation_interval_seconds=30)
    with recorded(recorder, "job"):
        monitor.start_goodput_uploader()
        prepare(recorder, clock)
        train(recorder, clock, *range(10))
    monitor.stop_goodput_uploader()
    seen: Any = EventAccumulator(str(tmp_path / "tensorboard/goodput"))
    seen.Reload()
    [*_, last] = seen.Scalars("goodput/goodput")
    results = answers(recorder, clock)
    assert (last.value, last.step) == pytest.approx((100 * results[""] / results["elapsed"], 9))
    [*_, last] = seen.Scalars("badput/tpu_initialization")
    assert last.value == pytest.approx(1000 / results["elapsed"])


def test_axlearn_records_evaluations_as_custom_events(clock: Clock) -> None:
    name = "goodput_logger_fuji"
    recorder = goodput.GoodputRecorder(job_name="fuji", logger_name=name, logging_enabled=True)
    recorder.record_job_start_time()
    recorder.record_tpu_init_start_time()
    clock.passes(5)
    recorder.record_tpu_init_end_time()
    recorder.record_training_preparation_start_time()
    clock.passes(7)
    recorder.record_training_preparation_end_time()
    for step in range(4):
        recorder.record_data_loading_start_time()
        clock.passes(LOAD_S)
        recorder.record_data_loading_end_time()
        recorder.record_step_start_time(step)
        clock.passes(STEP_S)
        if step == 2:
            recorder.record_custom_badput_event_start_time(custom_badput_event_type="EVAL")
            clock.passes(9)
            recorder.record_custom_badput_event_end_time(custom_badput_event_type="EVAL")
    recorder.record_job_end_time()
    recorder.flush()
    calculator = goodput.GoodputCalculator(job_name="fuji", logger_name=name, clock=clock)
    percent, breakdown, step = calculator.get_job_goodput(include_badput_breakdown=True)
    elapsed = 12 + 4 * INTERVAL_S + 9
    assert (percent, step) == pytest.approx((100 * (4 * INTERVAL_S - LOAD_S) / elapsed, 3))
    assert breakdown[BadputType.CUSTOM_BADPUT_EVENTS] == pytest.approx({"EVAL": 100 * 9 / elapsed})


@pytest.mark.parametrize("interval_s", [-1, None])
def test_axlearns_monitor_without_step_deviations_uploads_goodput(
    interval_s: Any, clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """AXLearn documents an interval of -1 as "no step deviations"."""
    recorder = recorder_of_maxtext()
    monitor = monitor_without_deviations(
        tmp_path, step_deviation_interval_seconds=interval_s, gcs_sync_interval_seconds=-1
    )
    with recorded(recorder, "job"):
        monitor.start_goodput_uploader()
        monitor.start_step_deviation_uploader()
        train(recorder, clock, *range(10))
    monitor.stop_goodput_uploader()
    monitor.stop_step_deviation_uploader()
    seen: Any = EventAccumulator(str(tmp_path / "tensorboard/goodput"))
    seen.Reload()
    assert seen.Scalars("goodput/goodput")[-1].step == 9
    assert not caplog.records


@pytest.mark.parametrize("process", [1, 7])
def test_other_processes_record_nothing(process: int, clock: Clock, storage: Path) -> None:
    recorder = recorder_of_maxtext(process)
    with recorded(recorder, "job"):
        prepare(recorder, clock)
        train(recorder, clock, 0, 1)
    recorder.flush()
    assert list(storage.iterdir()) == []
