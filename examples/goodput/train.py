"""JAX loop with goodput over all restarts: kill it, start it again, and print the report.

pip install ./sdk jax orbax-checkpoint; python train.py; python -m mldiagnostics.goodput mldiagnostics/goodput-example
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from mldiagnostics import machinelearning_run, metrics
from mldiagnostics.integrations.orbax import MLDiagnosticsLogger

STEPS, SAVE_EVERY, EVALUATE_EVERY = 40, 10, 15
WIDTH = 256


@jax.jit
def step(weights: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return weights and loss after one step of gradient descent towards the identity."""
    error, gradient = jax.value_and_grad(lambda weights: jnp.mean((batch @ weights - batch) ** 2))(weights)
    return weights - 10 * gradient, error


def main() -> None:
    """Train from the latest checkpoint to step 40."""
    random = np.random.default_rng(0)
    # Restarts of a job belong to one run. On Kubernetes the webhook injects the run id; here a name sets it.
    with machinelearning_run("goodput", run_workload_id="goodput-example") as run:
        with run.recorder.training_preparation():
            weights, first = jnp.zeros((WIDTH, WIDTH)), 0
            checkpoints = ocp.CheckpointManager(Path("checkpoints").absolute(), logger=MLDiagnosticsLogger())
            if (last := checkpoints.latest_step()) is not None:
                weights = checkpoints.restore(last, args=ocp.args.StandardRestore({"weights": weights}))["weights"]
                first = last + 1
        for number in range(first, STEPS):
            with run.recorder.data_loading():
                batch = random.normal(size=(64, WIDTH)).astype(np.float32)
            run.step(number)
            weights, error = step(weights, batch)
            metrics.record("loss", error, step=number)
            if number % SAVE_EVERY == SAVE_EVERY - 1:
                checkpoints.save(number, args=ocp.args.StandardSave({"weights": weights}))
            if number % EVALUATE_EVERY == EVALUATE_EVERY - 1:
                with run.recorder.event("EVAL"):
                    float(step(weights, batch)[1])
        checkpoints.wait_until_finished()
        print(f"trained from step {first}")


if __name__ == "__main__":
    main()
