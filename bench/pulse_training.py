"""A JAX training whose profiler records pulses in every second block; prints the cost of each pair as JSON.

usage: python -m bench.pulse_training DURATION_MS FOLDER
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from cluster.ports import free_port

from bench.sdk_steps import in_pairs, jitted_step

PAIRS = 16
STEPS = 250
STEP_S = 0.02


def main(duration_ms: int, folder: Path) -> None:
    step, port = jitted_step(size=256, seconds=STEP_S), free_port()
    jax.profiler.start_server(port)
    command = [sys.executable, "-m", "bench.pulse_clients", str(port), str(duration_ms), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        block(step, client)  # the first recording of a process loads the profiler
        pairs = in_pairs(lambda on: block(step, client if on else None), PAIRS)
    print(json.dumps([sum(on) - sum(off) for on, off in pairs]))


def block(step: Callable[[], Any], client: "subprocess.Popen[str] | None") -> list[float]:
    """Return the time of each step in seconds; with a client, one pulse is recorded meanwhile."""
    if client is not None:
        assert client.stdin
        client.stdin.write("\n")
        client.stdin.flush()
    times = []
    for number in range(STEPS):
        start = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step()
        times.append(time.perf_counter() - start)
    if client is not None:
        assert client.stdout
        assert client.stdout.readline().strip() == "Captured"
    return times


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
