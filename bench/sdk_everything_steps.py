"""A step that waits 100 ms for a device, with all features of the SDK and with none, in pairs.

It prints the times as JSON. The step is a wait, as that of a host for its accelerator: it shows each delay of the
training thread, by calls, by the interpreter's lock and by other threads.
"""

import json
import logging
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mldiagnostics import metrics
from mldiagnostics.compat.monitoring import GCPOptions, GoodputMonitor
from mldiagnostics.run import machinelearning_run

from bench.sdk_steps import in_pairs

PAIRS: Final = 8
STEPS: Final = 60
STEP_S: Final = 0.1
METRICS: Final = 10
SINKS: Final = ("jsonl", "tensorboard", "prometheus")
SETTLE_S: Final = 5.0
"""Time in which the monitor starts, which is not a cost of a step."""
SYSTEM_S: Final = 1.0
UPLOAD_S: Final = 5.0
"""A sixth of the default, so that each block has an upload."""


def main() -> None:
    logging.disable()
    print(json.dumps(in_pairs(lambda on: measured(on=on), PAIRS)))


def step() -> None:
    """Wait for the device."""
    time.sleep(STEP_S)


def measured(*, on: bool) -> list[float]:
    if on:
        with tempfile.TemporaryDirectory() as folder:
            return with_everything(Path(folder))
    time.sleep(SETTLE_S)
    return [_timed_s() for _ in range(STEPS)]


def with_everything(folder: Path) -> list[float]:
    times = []
    run = machinelearning_run(
        "bench",
        storage=str(folder / "runs"),
        sinks=["jsonl:", f"tensorboard:{folder}/events", f"prometheus:127.0.0.1:{_free_port()}"],
        on_demand_xprof=True,
        log_system_metrics=True,
        metrics_record_interval_sec=SYSTEM_S,
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


def _timed_s() -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
