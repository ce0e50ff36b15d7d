"""Data-parallel training on every host of a JAX job, as one run.

Start it once per host. Without these variables it trains as a single process:
  JAX_COORDINATOR_ADDRESS  host:port of process 0, equal for all processes
  JAX_PROCESS_COUNT        number of processes
  JAX_PROCESS_ID           index of this process; on Kubernetes the completion index of an Indexed Job
  MLDIAG_PROFILER_PORT     port of the profiler (9999)
  MLDIAG_STORAGE           root directory of the run's files (./mldiagnostics)
  REST_SECONDS             pause after each step, to leave CPU time on a small machine (0.04)
  SLOW_INPUT_SECONDS       pause while a process reads a batch, to see a slow host in a diagnosis (0)
  SLOW_INPUT_PROCESS       index of the process that pauses (each)
  SLOW_INPUT_FROM_STEP     first step with the pause, to see a training get slower (0)
  STEPS                    number of steps; 0: until stopped
  WIDTH                    width of each layer, for steps that cost less (256)
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from mldiagnostics import MLRun, machinelearning_run, metrics

WIDTH = int(os.environ.get("WIDTH", "256"))
BATCH_PER_HOST = 64
LAYERS = 4
LEARNING_RATE = 0.05

Parameters = list[jax.Array]
Step = Callable[[Parameters, jax.Array, jax.Array], tuple[Parameters, jax.Array]]


def join_job() -> None:
    """Connect to the other processes, if there are any."""
    if coordinator := os.environ.get("JAX_COORDINATOR_ADDRESS"):
        jax.distributed.initialize(
            coordinator_address=coordinator,
            num_processes=int(os.environ["JAX_PROCESS_COUNT"]),
            process_id=int(os.environ["JAX_PROCESS_ID"]),
        )


def loss(parameters: Parameters, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Return the mean squared error of a small multi-layer perceptron over the batch of all hosts."""
    hidden = inputs
    for weights in parameters[:-1]:
        hidden = jnp.tanh(hidden @ weights)
    return jnp.mean((hidden @ parameters[-1] - targets) ** 2)


def make_step(mesh: Mesh) -> Step:
    """Return a step of gradient descent: parameters are replicated, the batch is split over the hosts."""
    replicated, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("host"))

    def step(parameters: Parameters, inputs: jax.Array, targets: jax.Array) -> tuple[Parameters, jax.Array]:
        error, gradients = jax.value_and_grad(loss)(parameters, inputs, targets)
        return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients), error

    return jax.jit(step, in_shardings=(replicated, split, split), out_shardings=(replicated, replicated))


def input_pause(step: int) -> float:
    """Return how long this process pauses while it reads the batch of a step, in seconds."""
    pauses = os.environ.get("SLOW_INPUT_PROCESS", "") in ("", os.environ.get("JAX_PROCESS_ID", "0"))
    starts = int(os.environ.get("SLOW_INPUT_FROM_STEP", "0"))
    return float(os.environ.get("SLOW_INPUT_SECONDS", "0")) if pauses and step >= starts else 0.0


def next_batch(random: np.random.Generator, pause: float) -> np.ndarray:
    """Return the next batch of this host."""
    with jax.profiler.TraceAnnotation("next_batch"):
        time.sleep(pause)
        return random.normal(size=(BATCH_PER_HOST, WIDTH)).astype(np.float32)


def train(run: MLRun, steps: int, rest_seconds: float) -> None:
    """Train until the last step or a signal, and print the progress every second."""
    mesh = Mesh(np.array(jax.devices()), ("host",))
    split = NamedSharding(mesh, PartitionSpec("host"))
    step = make_step(mesh)
    shared, own = np.random.default_rng(0), np.random.default_rng(1 + jax.process_index())
    parameters: Parameters = [
        jnp.asarray(shared.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)), jnp.float32) for _ in range(LAYERS)
    ]
    number, reported_at, reported_number = 0, time.monotonic(), 0
    while not steps or number < steps:
        run.step(number)
        start = time.monotonic()
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            batch = next_batch(own, input_pause(number))
            inputs = jax.make_array_from_process_local_data(split, batch)
            targets = jax.make_array_from_process_local_data(split, np.roll(batch, 1, axis=1))
            parameters, error = step(parameters, inputs, targets)
            error.block_until_ready()
        metrics.record("loss", error, step=number)
        metrics.record("step_time", time.monotonic() - start, step=number)
        number += 1
        if (elapsed := time.monotonic() - reported_at) >= 1:
            milliseconds = 1000 * elapsed / (number - reported_number)
            print(f"step {number}: loss {float(error):.4f}, {milliseconds:.1f} ms per step", flush=True)
            reported_at, reported_number = time.monotonic(), number
        time.sleep(rest_seconds)


def stop(number: int, _: FrameType | None) -> None:
    """Leave the training loop with the status of a process that a signal ended: 143 for SIGTERM, never 0."""
    sys.exit(128 + number)


def main() -> None:
    """Join the job and train; exit at once when the pod is stopped."""
    signal.signal(signal.SIGTERM, stop)  # by default, process 1 of a container ignores SIGTERM
    try:
        work()
    except SystemExit as stopped:
        os._exit(int(stopped.code or 0))  # without JAX's shutdown, which waits for the other hosts


def work() -> None:
    """Join the job, start the run, train."""
    join_job()
    configs = {"width": WIDTH, "layers": LAYERS, "batch_per_host": BATCH_PER_HOST, "learning_rate": LEARNING_RATE}
    with machinelearning_run("training", configs=configs, on_demand_xprof=True) as run:
        print(f"process {jax.process_index()} of {jax.process_count()}", flush=True)
        train(run, int(os.environ.get("STEPS", "0")), float(os.environ.get("REST_SECONDS", "0.04")))


if __name__ == "__main__":
    main()
