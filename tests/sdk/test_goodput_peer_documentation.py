"""Examples of the documentation of ml-goodput-measurement 0.2.3, with only the import changed.

Each test makes the calls of one of its sections, in that order and with those arguments.
"""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["mldiagnostics", "ml_goodput_measurement"])
def library(request: pytest.FixtureRequest) -> Any:
    """The package that is imported from: ours by its name, and by the peer's."""
    return import_module(request.param)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The configuration of a program."""
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    return SimpleNamespace(
        run_name="documented", steps=6, eval_interval=2, sdc_check_interval=3, tensorboard_dir=str(tmp_path / "board")
    )


def train(goodput: Any, config: SimpleNamespace) -> str:
    """Record a job as the sections on recording do; return the logger's name."""
    logger_name = f"goodput_{config.run_name}"
    recorder = goodput.GoodputRecorder(job_name=config.run_name, logger_name=logger_name, logging_enabled=True)
    recorder.record_job_start_time(dt.datetime.now())  # noqa: DTZ005 - as it is documented
    recorder.record_tpu_init_start_time()
    recorder.record_tpu_init_end_time()
    recorder.record_training_preparation_start_time()
    recorder.record_training_preparation_end_time()
    for step in np.arange(0, config.steps):
        recorder.record_data_loading_start_time()
        recorder.record_data_loading_end_time()
        recorder.record_step_start_time(step)
        if step % config.eval_interval == 0:
            recorder.record_custom_badput_event_start_time(custom_badput_event_type="eval_step")
            recorder.record_custom_badput_event_end_time(custom_badput_event_type="eval_step")
        if step % config.sdc_check_interval == 0:
            recorder.record_custom_badput_event_start_time(custom_badput_event_type="sdc_check")
            recorder.record_custom_badput_event_end_time(custom_badput_event_type="sdc_check")
    recorder.record_job_end_time(dt.datetime.now())  # noqa: DTZ005
    recorder.flush()
    return logger_name


def test_recording_and_asking_for_goodput(library: Any, config: SimpleNamespace) -> None:
    goodput = library.goodput
    logger_name = train(goodput, config)
    calculator = goodput.GoodputCalculator(job_name=config.run_name, logger_name=logger_name)
    total_goodput, _, _ = calculator.get_job_goodput()
    assert 0.0 < float(f"{total_goodput:.2f}") <= 100.0
    current, badput, last_step = calculator.get_job_goodput(include_badput_breakdown=True)
    assert last_step == config.steps - 1
    kinds = [kind for kind in goodput.BadputType if kind.value < goodput.BadputType.CUSTOM_BADPUT_EVENTS.value]
    shares = [f"{badput[kind]:.2f}%" for kind in (*kinds, goodput.BadputType.OTHER)]
    assert len(shares) == 10
    custom = badput[goodput.BadputType.CUSTOM_BADPUT_EVENTS]
    assert custom.get("EVAL_STEP", 0.0) > 0.0
    assert custom.get("SDC_CHECK", 0.0) > 0.0
    blocking = [badput[kind] for kind in (*kinds, goodput.BadputType.OTHER) if kind.name != "DATA_LOADING_ASYNC"]
    assert current + sum(blocking) + sum(custom.values()) == pytest.approx(100.0)


def test_asking_for_a_window_with_pathways(library: Any, config: SimpleNamespace) -> None:
    logger_name = train(library.goodput, config)
    calculator = library.goodput.GoodputCalculator(
        job_name=config.run_name, logger_name=logger_name, using_pathways=True
    )
    now = dt.datetime.now(dt.timezone.utc)
    window = now - dt.timedelta(hours=1), now + dt.timedelta(hours=1)
    current, badput, last_step, total_time, disruptions = calculator.get_job_goodput_interval(*window)
    assert 0.0 < current <= 100.0
    assert badput[library.goodput.BadputType.OTHER] >= 0.0
    assert (last_step, disruptions) == (config.steps - 1, 0)
    assert total_time > 0.0


def test_monitoring_the_whole_job_and_windows(library: Any, config: SimpleNamespace, tmp_path: Path) -> None:
    gcp_options = library.goodput_utils.GCPOptions(
        project_id=None,
        location=None,
        replica_id="0",
        acc_type=None,
        cluster_name=None,
        enable_gcp_goodput_metrics=False,
        enable_gcp_step_deviation_metrics=False,
    )
    monitor = library.monitoring.GoodputMonitor(
        job_name=config.run_name,
        logger_name=train(library.goodput, config),
        tensorboard_dir=config.tensorboard_dir,
        upload_interval=30,
        monitoring_enabled=True,
        include_badput_breakdown=True,
        include_step_deviation=True,
        configured_ideal_step_time=None,
        gcp_options=gcp_options,
        max_logs_retention_period=7 * 24 * 60 * 60,
    )
    monitor.start_goodput_uploader()
    monitor.start_rolling_window_goodput_uploader(rolling_windows_seconds=[60, 300, 900])
    monitor.stop_goodput_uploader(skip_final_flush=False)
    monitor.stop_rolling_window_goodput_uploader(skip_final_flush=True)
    assert list((tmp_path / "board/goodput").glob("events.out.tfevents.*"))


def test_monitors_as_they_are_made_in_each_section(library: Any, config: SimpleNamespace) -> None:
    names = {
        "job_name": config.run_name,
        "logger_name": "goodput_documented",
        "tensorboard_dir": config.tensorboard_dir,
        "upload_interval": 30,
        "monitoring_enabled": False,
        "include_badput_breakdown": True,
    }
    for more in (
        {"pathway_enabled": True},
        {"skip_final_flush": True},
        {"gcp_options": library.goodput_utils.GCPOptions()},
    ):
        monitor = library.monitoring.GoodputMonitor(**names, **more)
        monitor.start_goodput_uploader()
        monitor.stop_goodput_uploader()


def test_elastic_recording_and_monitoring(library: Any, config: SimpleNamespace) -> None:
    job_name, logger_name, is_lead_host = config.run_name, "goodput_documented", True
    recorder = library.goodput_elastic.ElasticGoodputRecorder(job_name, logger_name, is_lead_host)
    recorder.record_job_start_time()
    recorder.record_elastic_slice_counts(available_slices=3, active_slices=4, total_slices=4)
    recorder.record_elastic_wait_start_time(event_type="elastic_scale_up")
    recorder.record_elastic_slice_counts(available_slices=3, active_slices=0, total_slices=4)
    recorder.record_elastic_wait_end_time(event_type="elastic_scale_up")
    recorder.record_elastic_reinit_start_time()
    recorder.record_elastic_reinit_end_time()
    recorder.record_step_start_time(0)
    recorder.flush()
    calculator = library.goodput_elastic.ElasticGoodputCalculator(job_name, logger_name)
    _, badput, _ = calculator.get_job_goodput(include_badput_breakdown=True)
    kinds = library.goodput.BadputType
    assert badput[kinds.ELASTIC_SCALE_UP] > 0.0
    assert badput[kinds.ELASTIC_REINITIALIZATION] > 0.0
    assert 0.0 < calculator.get_job_goodput_details()["stepping_slice_efficiency"] <= 1.0
    monitor = library.monitoring_elastic.ElasticGoodputMonitor(  # without the interval, as it is documented
        job_name=job_name,
        logger_name=logger_name,
        tensorboard_dir=config.tensorboard_dir,
        include_badput_breakdown=True,
        include_slice_efficiency=True,
        gcp_options=library.monitoring_elastic.GCPOptions(enable_gcp_goodput_metrics=True),
    )
    monitor.start_goodput_uploader()
    monitor.stop_goodput_uploader()


def test_the_cache_and_the_statistics_are_where_they_were(library: Any, tmp_path: Path) -> None:
    assert library.goodput_cache.GoodputCache("documented", str(tmp_path)).is_cache_empty()
    options = library.goodput.CheckpointLoggerOptions(job_name="documented", use_goodput_logger=True)
    assert library.checkpoint_badput_calculator.CheckpointBadputCalculator(options).entries == []
    assert library.gcp_metrics.ValueType.DOUBLE.value == "double_value"
