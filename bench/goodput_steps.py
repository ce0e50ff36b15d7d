"""A jitted step of 1 ms with and without recorder and monitor; prints the times as JSON."""

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mldiagnostics.compat.monitoring import GCPOptions, GoodputMonitor
from mldiagnostics.goodput import GoodputRecorder

from bench.goodput_jobs import JOB, LOGGER
from bench.sdk_steps import in_pairs, one_millisecond_step

PAIRS = 12
STEPS = 1000
SETTLE_S = 2.0
UPLOAD_S = 1.0


def main() -> None:
    logging.disable()
    step = one_millisecond_step()
    block(step, lambda _: None)
    print(json.dumps(in_pairs(lambda on: measured(step, on=on), PAIRS)))


def measured(step: Callable[[], Any], *, on: bool) -> list[float]:
    if on:
        with tempfile.TemporaryDirectory() as folder, accounted(Path(folder)) as record:
            return block(step, record)
    time.sleep(SETTLE_S)
    return block(step, lambda _: None)


def block(step: Callable[[], Any], record: Callable[[int], object]) -> list[float]:
    """Return the time of each step in seconds, with its recording."""
    times = []
    for number in range(STEPS):
        start = time.perf_counter()
        record(number)
        step()
        times.append(time.perf_counter() - start)
    return times


@contextmanager
def accounted(folder: Path) -> Iterator[Callable[[int], object]]:
    """Run a recorder, and a monitor that uploads everything every second."""
    recorder = GoodputRecorder(JOB, LOGGER, logging_enabled=True, log=folder / "log")
    recorder.record_job_start_time()
    recorder.flush()
    with closing(recorder), monitored(folder, str(folder / "log"), UPLOAD_S):
        time.sleep(SETTLE_S)
        yield recorder.record_step_start_time


@contextmanager
def monitored(folder: Path, log: str, upload_s: float) -> Iterator[None]:
    """Upload everything of a goodput monitor of a log every `upload_s` seconds."""
    monitor = GoodputMonitor(
        JOB,
        LOGGER,
        str(folder / "tensorboard"),
        upload_s,
        monitoring_enabled=True,
        include_badput_breakdown=True,
        include_step_deviation=True,
        step_deviation_interval_seconds=upload_s,
        gcp_options=GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False),
        skip_final_flush=True,
        cache_dir=str(folder / "cache"),
        log=log,
    )
    monitor.start_goodput_uploader()
    monitor.start_step_deviation_uploader()
    monitor.start_rolling_window_goodput_uploader([60, 3600])
    try:
        yield
    finally:
        monitor.stop_goodput_uploader()
        monitor.stop_step_deviation_uploader()
        monitor.stop_rolling_window_goodput_uploader()


if __name__ == "__main__":
    main()
