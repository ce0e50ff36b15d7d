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
import jax.numpy as jnp
from cluster.ports import free_port

from bench.sdk_steps import in_pairs

PAIRS = 16
STEPS = 250
STEP_S = 0.02


def main(duration_ms: int, folder: Path) -> None:
    step, port = twenty_milliseconds_step(), free_port()
    jax.profiler.start_server(port)
    command = [sys.executable, "-m", "bench.pulse_clients", str(port), str(duration_ms), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        block(step, client)  # the first recording of a process loads the profiler
        pairs = in_pairs(lambda on: block(step, client if on else None), PAIRS)
    print(json.dumps([sum(on) - sum(off) for on, off in pairs]))


def block(step: Callable[[int], Any], client: "subprocess.Popen[str] | None") -> list[float]:
    """Return the time of each step in seconds; with a client, one pulse is recorded meanwhile."""
    if client is not None:
        assert client.stdin
        client.stdin.write("\n")
        client.stdin.flush()
    times = []
    for number in range(STEPS):
        start = time.perf_counter()
        step(number)
        times.append(time.perf_counter() - start)
    if client is not None:
        assert client.stdout
        assert client.stdout.readline().strip() == "Captured"
    return times


def twenty_milliseconds_step() -> Callable[[int], Any]:
    """Return a jitted loop of matrix products that takes 20 ms on this machine, annotated as a step."""
    matrix = jnp.full((256, 256), 0.01)

    def compiled(rounds: int) -> Callable[[int], Any]:
        step = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda _, y: jnp.tanh(y @ x), x))
        step(matrix).block_until_ready()

        def annotated(number: int) -> None:
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                step(matrix).block_until_ready()

        return annotated

    probe, rounds = compiled(20), 20
    once_s = min(_timed_s(probe) for _ in range(20))
    return compiled(max(1, round(rounds * STEP_S / once_s)))


def _timed_s(step: Callable[[int], Any]) -> float:
    start = time.perf_counter()
    step(0)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
