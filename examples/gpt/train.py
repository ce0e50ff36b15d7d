"""Train a small GPT: metrics, goodput, profiles, checkpoints, preemption and restart.

  pip install ./sdk jax orbax-checkpoint
  python train.py                      the tiny model, on a CPU, in two minutes
  SIZE=small python train.py           sizes for accelerators: small, 1b

Start it once per host. Without these variables it trains as a single process:
  JAX_COORDINATOR_ADDRESS  host:port of process 0, equal for all processes
  JAX_PROCESS_COUNT        number of processes
  JAX_PROCESS_ID           index of this process; on Kubernetes the completion index of an Indexed Job
  CHECKPOINTS              directory or gs:// URL of the checkpoints (./checkpoints)
  TENSORBOARD              directory or gs:// URL of the event files with the goodput; empty: none
  MLDIAG_STORAGE           root directory of the run's files (./mldiagnostics)
  STEPS                    number of steps (300)
"""

import os
import signal
import time
from pathlib import Path
from types import FrameType

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from data import text
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from mldiagnostics import MLRun, machinelearning_run, metrics, monitoring, xprof
from mldiagnostics.integrations.orbax import MLDiagnosticsLogger
from model import Tree, init, loss, step
from sizes import SIZES, Size

JOB = "gpt"
SAVE_EVERY, EVALUATE_EVERY = 50, 100
PROFILED = (20, 25)
"""First step of the profile, and the one after its last."""
stop_signals: list[int] = []
"""Numbers of the signals that ended the training; a preemption sends SIGTERM."""


def join_job() -> None:
    """Connect to the other processes, if there are any."""
    if coordinator := os.environ.get("JAX_COORDINATOR_ADDRESS"):
        jax.distributed.initialize(
            coordinator_address=coordinator,
            num_processes=int(os.environ["JAX_PROCESS_COUNT"]),
            process_id=int(os.environ["JAX_PROCESS_ID"]),
        )


def stop(number: int, _: FrameType | None) -> None:
    """Save and leave after this step."""
    stop_signals.append(number)


class Training:
    """The state of the training, on all devices of all hosts.

    Args:
        size: Size of the model.
    """

    def __init__(self, size: Size) -> None:
        self.size = size
        mesh = Mesh(np.array(jax.devices()), ("host",))
        self._split, whole = NamedSharding(mesh, PartitionSpec("host")), NamedSharding(mesh, PartitionSpec())
        self.weights: Tree = jax.device_put(init(size, seed=0), whole)
        zeros = jax.tree.map(jnp.zeros_like, self.weights)
        self.moments: Tree = jax.device_put({"first": zeros, "second": zeros}, whole)
        self._step = jax.jit(step, static_argnames="size", out_shardings=whole)
        self._loss = jax.jit(loss, static_argnames="size", out_shardings=whole)
        directory = os.environ.get("CHECKPOINTS") or str(Path("checkpoints").absolute())
        self.checkpoints = ocp.CheckpointManager(
            directory, options=ocp.CheckpointManagerOptions(max_to_keep=2), logger=MLDiagnosticsLogger()
        )
        self.first = 0
        if (last := self.checkpoints.latest_step()) is not None:
            state = self.checkpoints.restore(last, args=ocp.args.StandardRestore(self._state()))
            self.weights, self.moments, self.first = state["weights"], state["moments"], last + 1

    def _state(self) -> Tree:
        return {"weights": self.weights, "moments": self.moments}

    def save(self, number: int) -> None:
        """Start to save the state after a step."""
        self.checkpoints.save(number, args=ocp.args.StandardSave(self._state()))

    def batch(self, number: int) -> jax.Array:
        """Return the tokens of a step, of all hosts."""
        own = text(self.size, number, jax.process_index(), jax.process_count())
        return jax.make_array_from_process_local_data(self._split, own)

    def step(self, number: int, batch: jax.Array) -> dict[str, jax.Array]:
        """Train one step; return its figures."""
        self.weights, self.moments, figures = self._step(
            self.weights, self.moments, batch, jnp.float32(number), size=self.size
        )
        return figures

    def evaluate(self, number: int) -> float:
        """Return the loss of a batch that no step trains on."""
        return float(self._loss(self.weights, self.batch(-number), size=self.size))


def train(run: MLRun, training: Training, steps: int) -> int:
    """Train until the last step or a signal; return the last step."""
    number, size = training.first - 1, training.size
    tokens = size.batch_per_host * size.context
    before_s = time.monotonic()
    for number in range(training.first, steps):
        with run.recorder.data_loading():
            batch = training.batch(number)
        run.step(number)
        figures = training.step(number, batch)
        for name, value in figures.items():
            metrics.record(name, value, step=number)
        now_s = time.monotonic()
        seconds, before_s = now_s - before_s, now_s
        metrics.record("perf/step_time_seconds", seconds, step=number)
        metrics.record("perf/per_device_tokens_per_sec", tokens / seconds / jax.local_device_count(), step=number)
        tflops = tokens * size.flops_per_token / seconds / jax.local_device_count() / 1e12
        metrics.record("perf/per_device_tflops_per_sec", tflops, step=number)
        if number % 50 == 0:
            print(f"step {number}: loss {float(figures['learning/loss']):.3f}", flush=True)
        is_last = number == steps - 1 or stop_signals
        if is_last or number % SAVE_EVERY == SAVE_EVERY - 1:
            training.save(number)
        if number % EVALUATE_EVERY == EVALUATE_EVERY - 1:
            with run.recorder.event("EVAL"):
                metrics.record("evaluation/loss", training.evaluate(number), step=number)
        if stop_signals:
            break
    training.checkpoints.wait_until_finished()
    return number


def work() -> None:
    """Join the job, start the run, train."""
    size, steps = SIZES[os.environ.get("SIZE", "tiny")], int(os.environ.get("STEPS", "300"))
    join_job()
    with machinelearning_run(
        JOB, configs={"size": vars(size), "parameters": size.parameters}, on_demand_xprof=True
    ) as run:
        monitor = monitoring.GoodputMonitor(
            JOB,
            f"goodput_{JOB}",
            tensorboard_dir=os.environ.get("TENSORBOARD", ""),
            upload_interval=30,
            log=f"{os.environ.get('MLDIAG_STORAGE', 'mldiagnostics')}/{run.run_id}",
            monitoring_enabled=jax.process_index() == 0,
            include_badput_breakdown=True,
            include_step_deviation=True,
        )
        monitor.start_goodput_uploader()
        monitor.start_step_deviation_uploader()
        monitor.start_rolling_window_goodput_uploader([600, 3600])
        with run.recorder.training_preparation():
            training = Training(size)
        if training.first <= PROFILED[0]:
            xprof(steps=PROFILED)
        last = train(run, training, steps)
        monitor.stop_goodput_uploader()
        print(f"trained steps {training.first} to {last}", flush=True)
        if stop_signals:
            raise SystemExit(128 + stop_signals[0])  # never 0: the controller starts the work again


def main() -> None:
    """Train; exit at once when the pod is stopped."""
    signal.signal(signal.SIGTERM, stop)
    try:
        work()
    except SystemExit as ended:
        os._exit(int(ended.code or 0))  # without JAX's shutdown, which waits for the other hosts


if __name__ == "__main__":
    main()
