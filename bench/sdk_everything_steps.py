"""A jitted step of 100 ms with all features of the SDK and with none, in pairs; prints the times as JSON."""

import json
import logging
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from mldiagnostics import metrics
from mldiagnostics.compat.monitoring import GCPOptions, GoodputMonitor
from mldiagnostics.run import machinelearning_run

from bench.sdk_steps import in_pairs, jitted_step

PAIRS: Final = 20
STEPS: Final = 50
STEP_S: Final = 0.1
METRICS: Final = 10
SINKS: Final = ("jsonl", "tensorboard", "prometheus")
SETTLE_S: Final = 1.0
UPLOAD_S: Final = 1.0


def main() -> None:
    logging.disable()
    step = jitted_step(size=128, seconds=STEP_S)
    print(json.dumps(in_pairs(lambda on: measured(step, on=on), PAIRS)))


def measured(step: Callable[[], Any], *, on: bool) -> list[float]:
    if on:
        with tempfile.TemporaryDirectory() as folder:
            return with_everything(step, Path(folder))
    time.sleep(SETTLE_S)
    return [_timed_s(step) for _ in range(STEPS)]


def with_everything(step: Callable[[], Any], folder: Path) -> list[float]:
    times = []
    run = machinelearning_run(
        "bench",
        storage=str(folder / "runs"),
        sinks=["jsonl:", f"tensorboard:{folder}/events", f"prometheus:127.0.0.1:{_free_port()}"],
        on_demand_xprof=True,
        log_system_metrics=True,
        metrics_record_interval_sec=UPLOAD_S,
    )
    with run, monitored(folder, str(folder / "runs" / run.run_id)):
        time.sleep(SETTLE_S)
        for number in range(STEPS):
            start = time.perf_counter()
            run.step(number)
            with run.recorder.data_loading():
                pass
            step()
            for metric in range(METRICS):
                metrics.record(f"metric/{metric}", 0.5, step=number)
            times.append(time.perf_counter() - start)
    return times


@contextmanager
def monitored(folder: Path, log: str) -> Iterator[None]:
    """Upload everything of a goodput monitor every second."""
    monitor = GoodputMonitor(
        "bench",
        "goodput_bench",
        str(folder / "tensorboard"),
        UPLOAD_S,
        monitoring_enabled=True,
        include_badput_breakdown=True,
        include_step_deviation=True,
        step_deviation_interval_seconds=UPLOAD_S,
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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _timed_s(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
