"""A step that waits 100 ms for a device, with all features of the SDK and with none, in pairs.

It prints the times as JSON. The step is a wait, as that of a host for its accelerator: it shows each delay of the
training thread, by calls, by the interpreter's lock and by other threads.
"""

import json
import logging
import tempfile
import time
from pathlib import Path
from typing import Final

from cluster.ports import free_port
from mldiagnostics import metrics
from mldiagnostics.run import machinelearning_run

from bench.goodput_steps import monitored
from bench.sdk_steps import in_pairs, timed_s

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
    return [timed_s(step) for _ in range(STEPS)]


def with_everything(folder: Path) -> list[float]:
    times = []
    run = machinelearning_run(
        "bench",
        storage=str(folder / "runs"),
        sinks=["jsonl:", f"tensorboard:{folder}/events", f"prometheus:127.0.0.1:{free_port()}"],
        on_demand_xprof=True,
        log_system_metrics=True,
        metrics_record_interval_sec=SYSTEM_S,
    )
    with run, monitored(folder, str(folder / "runs" / run.run_id), UPLOAD_S):
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


if __name__ == "__main__":
    main()
