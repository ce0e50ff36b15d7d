"""Measures one recorder in its own process: `sdk_clients.py CLIENT MODE FOLDER` prints JSON.

It runs with the interpreter of the client's environment, so it only imports that client.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = Callable[[str, float, int], object]
Finish = Callable[[], int]
"""Closes the client and returns the number of delivered records."""

PACED, PACE_S = 600, 0.005
BURST = 100_000
CALLS_OF_SLOW_CLIENTS = 10_000


def main(client: str, what: str, folder: Path) -> None:
    client_calls = CLIENTS[client](folder)
    print(json.dumps(MEASURES[what](*client_calls)))
    sys.stdout.flush()
    os._exit(0)


def paced(record: Record, finish: Finish) -> dict[str, float]:
    """Measure calls as in a training loop: with cold caches and the worker's wake-up."""
    durations_ns = []
    for step in range(PACED):
        time.sleep(PACE_S)
        durations_ns.append(_timed(record, step))
    finish()
    return _quantiles(durations_ns)


def burst(record: Record, finish: Finish) -> dict[str, float]:
    """Measure calls without a pause, and the process's CPU time until all are delivered."""
    count = CALLS_OF_SLOW_CLIENTS if record.__module__ == "trackio" else BURST
    cpu = time.process_time()
    durations_ns = [_timed(record, step) for step in range(count)]
    delivered = finish()
    cpu_us = (time.process_time() - cpu) / count * 1e6
    return {**_quantiles(durations_ns), "cpu_us": cpu_us, "lost": count - delivered}


def endless(record: Record, _: Finish) -> dict[str, float]:
    """Record until killed; write the step to standard output after each call."""
    for step in itertools.count():
        record("loss", 0.5, step)
        os.write(1, b"%d\n" % step)
        time.sleep(PACE_S)
    return {}


def _timed(record: Record, step: int) -> int:
    start = time.perf_counter_ns()
    record("loss", 0.5, step)
    return time.perf_counter_ns() - start


def _quantiles(durations_ns: list[int]) -> dict[str, float]:
    durations_ns.sort()
    return {f"p{share:g}_us": durations_ns[int(len(durations_ns) * share / 100)] / 1e3 for share in (50, 99, 99.9)}


def floor(_: Path) -> tuple[Record, Finish]:
    def nothing(metric_name: str, value: float, step: int | None = None) -> None:
        pass

    return lambda name, value, step: nothing(name, value, step=step), lambda: BURST


def mldiagnostics(folder: Path) -> tuple[Record, Finish]:
    from mldiagnostics import metrics
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.recorder import RecordPipeline
    from mldiagnostics.sinks import sink_maker

    recording = RecordPipeline(Origin("0" * 64, "bench", str(folder), "01234567", "host"), [sink_maker("jsonl:")])
    time.sleep(0.2)

    def finish() -> int:
        recording.close(60)
        lines = (line for file in folder.rglob("*.jsonl") for line in file.read_text().splitlines())
        return sum('"kind":"metric"' in line for line in lines)

    return lambda name, value, step: metrics.record(name, value, step=step), finish


def google(_: Path) -> tuple[Record, Finish]:
    """Return Google's recorder and worker with an exporter that does nothing."""
    os.environ |= {"MLRUN_SKIP_LIBTPU": "true", "TPU_NAME": "bench"}
    import logging

    import google_cloud_mldiagnostics
    from google_cloud_mldiagnostics.core.metrics import metrics_recorder
    from google_cloud_mldiagnostics.custom_types import mlrun_types

    metrics: Any = google_cloud_mldiagnostics.metrics

    logging.disable()
    delivered: list[int] = [0]

    class Nothing:
        def export(self, batch: Any) -> None:
            delivered[0] += len(batch)

    state = (mlrun_types.MLRun(name="bench"), [Nothing()], [Nothing()])
    metrics_recorder._is_master_host = True
    metrics_recorder._get_active_run_and_exporters = lambda: state

    def finish() -> int:
        metrics_recorder._queue.join()  # its own shutdown does not wait
        return delivered[0]

    return lambda name, value, step: metrics.record(name, value, step=step), finish


def tensorboardx(folder: Path) -> tuple[Record, Finish]:
    from tensorboardX import SummaryWriter  # type: ignore[import-not-found]

    writer = SummaryWriter(str(folder), flush_secs=1)
    calls = itertools.count()

    def record(name: str, value: float, step: int) -> None:
        next(calls)
        writer.add_scalar(name, value, step)

    def finish() -> int:
        writer.close()
        return next(calls)  # its queue blocks the caller instead of dropping

    return record, finish


def trackio(folder: Path) -> tuple[Record, Finish]:
    os.environ["TRACKIO_DIR"] = str(folder)
    import contextlib
    import sqlite3

    import trackio as client  # type: ignore[import-not-found]

    with contextlib.redirect_stdout(sys.stderr):
        client.init(project="bench")

    def record(name: str, value: float, step: int) -> None:
        client.log({name: value}, step=step)

    def finish() -> int:
        with contextlib.redirect_stdout(sys.stderr):
            client.finish()
        with sqlite3.connect(folder / "bench.db") as database:
            return int(database.execute("select count(*) from metrics").fetchone()[0])

    record.__module__ = "trackio"
    return record, finish


CLIENTS = {
    "floor": floor,
    "mldiagnostics": mldiagnostics,
    "google": google,
    "tensorboardX": tensorboardx,
    "trackio": trackio,
}
MEASURES = {"paced": paced, "burst": burst, "endless": endless}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
