"""Programs of `bench.sdk_hot_path`: `sdk_hot_path_programs.py WHAT [FOLDER]` prints JSON."""

import itertools
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO

from mldiagnostics import metrics
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline.buffer import PROCESS
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.run import machinelearning_run
from mldiagnostics.sinks import sink_maker

CALLS, BLOCKS = 2000, 30
POINTS, ROUNDS = 100_000, 5


def steps() -> dict[str, float]:
    """Measure `run.step` and `metrics.record` in turns."""
    with tempfile.TemporaryDirectory() as storage, redirect_stderr(StringIO()):
        run = machinelearning_run("bench", storage=storage, log_system_metrics=False)
        numbers = itertools.count()

        def step() -> None:
            for number in itertools.islice(numbers, CALLS):
                run.step(number)

        def record() -> None:
            for number in range(CALLS):
                metrics.record("loss", 0.5, step=number)

        calls = {"step": step, "record": record}
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(BLOCKS):
            for name, call in calls.items():
                start = time.thread_time()
                call()
                times[name].append((time.thread_time() - start) / CALLS * 1e6)
                while PROCESS.entries:
                    time.sleep(0.01)
        run.close()
    return {name: statistics.median(each) for name, each in times.items()}


def steps_jax() -> dict[str, float]:
    """Measure the same after JAX is imported."""
    import jax  # noqa: F401 - steps are marked for its traces from now on

    return steps()


def points() -> dict[str, float]:
    """Measure points that are written, and `json.dumps` of the same content, in turns."""
    pairs = [(_cpu_us(_dumps), _cpu_us(_written)) for _ in range(ROUNDS)]
    return {
        "dumps": statistics.median(dumps for dumps, _ in pairs),
        "ours": statistics.median(ours for _, ours in pairs),
        "ratio": statistics.median(ours / dumps for dumps, ours in pairs),
    }


def endless(folder: str) -> dict[str, float]:
    """Record without a pause until killed."""
    _open(folder, waits=False)
    time.sleep(0.2)
    print("begins", flush=True)
    for number in itertools.count():
        metrics.record("loss", 0.5 + number / 7, step=number)
    return {}


def _cpu_us(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) / POINTS * 1e6


def _dumps() -> None:
    for number in range(POINTS):
        json.dumps(
            {
                "v": 1, "kind": "metric", "t": time.time(), "name": "loss", "rank": 0, "attempt": 0,
                "value": 0.5 + number / 7, "step": number, "unit": "1",
            }
        )  # fmt: skip


def _written() -> None:
    with tempfile.TemporaryDirectory() as folder:
        recording = _open(folder, waits=True)
        for number in range(POINTS):
            metrics.record("loss", 0.5 + number / 7, step=number)
        assert recording.close(60).written == {"jsonl": POINTS}


def _open(folder: str, *, waits: bool) -> RecordPipeline:
    origin = Origin("0" * 64, "bench", folder, "01234567", "host")
    return RecordPipeline(origin, [sink_maker("jsonl:")], waits=waits)


if __name__ == "__main__":
    logging.disable()
    what, *arguments = sys.argv[1:]
    programs: dict[str, Callable[..., dict[str, float]]] = {
        "steps": steps, "steps-jax": steps_jax, "points": points, "endless": endless,
    }  # fmt: skip
    print(json.dumps(programs[what](*arguments)))
