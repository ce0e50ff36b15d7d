"""A jitted step of 1 ms with and without a run, in alternating blocks; prints the times as JSON."""

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from mldiagnostics import metrics
from mldiagnostics.run import machinelearning_run

PAIRS = 40
STEPS = 300
STEP_S = 0.001
NAMES = ("loss", "learning_rate", "gradient_norm", "step_time", "throughput")


def main() -> None:
    logging.disable()
    step = one_millisecond_step()
    block(step, on=False)
    print(json.dumps(in_pairs(lambda on: measured(step, on=on), PAIRS)))


def in_pairs(measured: Callable[[bool], list[float]], pairs: int) -> list[tuple[list[float], list[float]]]:
    """Measure pairs with and without, alternating the order."""
    pairs_s = []
    for number in range(pairs):
        first = number % 2 == 0
        times = {on: measured(on) for on in (first, not first)}
        pairs_s.append((times[True], times[False]))
    return pairs_s


def one_millisecond_step() -> Callable[[], Any]:
    """Return a jitted loop of small matrix products that takes 1 ms on this machine."""
    return jitted_step(size=64, seconds=STEP_S)


def jitted_step(*, size: int, seconds: float) -> Callable[[], Any]:
    """Return a jitted loop of products of matrices of a size that takes so long on this machine."""
    matrix = jnp.full((size, size), 0.01)

    def compiled(rounds: int) -> Callable[[], Any]:
        step = jax.jit(lambda x: jax.lax.fori_loop(0, rounds, lambda _, y: jnp.tanh(y @ x), x))
        step(matrix).block_until_ready()
        return lambda: step(matrix).block_until_ready()

    probe, rounds = compiled(100), 100
    once_s = min(timed_s(probe) for _ in range(50))
    return compiled(max(1, round(rounds * seconds / once_s)))


def measured(step: Callable[[], Any], *, on: bool) -> list[float]:
    with whole_run() if on else nothing():
        return block(step, on=on)


def block(step: Callable[[], Any], *, on: bool) -> list[float]:
    """Return the time of each step in seconds, with its metrics."""
    times = []
    for number in range(STEPS):
        start = time.perf_counter()
        step()
        if on:
            for name in NAMES:
                metrics.record(name, 0.5, step=number)
        times.append(time.perf_counter() - start)
    return times


@contextmanager
def whole_run() -> Iterator[None]:
    """Run with all features: system metrics, heartbeat, port for captures."""
    with tempfile.TemporaryDirectory() as storage:
        run = machinelearning_run(
            "bench", storage=storage, on_demand_xprof=True, log_system_metrics=True, metrics_record_interval_sec=1.0
        )
        time.sleep(0.3)
        try:
            yield
        finally:
            run.close()


@contextmanager
def nothing() -> Iterator[None]:
    time.sleep(0.3)
    yield


def timed_s(step: Callable[[], Any]) -> float:
    """Return the time of one step in seconds."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
