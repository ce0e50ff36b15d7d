"""Training loop with Flax and Optax as a run: metrics, configuration, and a profile of three steps.

pip install ./sdk flax optax jax; python train.py; python -m mldiagnostics.runs mldiagnostics
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from mldiagnostics import machinelearning_run, metrics, xprof

CONFIG = {"learning_rate": 0.01, "width": 64, "batch": 128, "steps": 30}


class Net(nn.Module):
    """Multi-layer perceptron with two layers."""

    @nn.compact
    def __call__(self, inputs: jax.Array) -> jax.Array:
        return nn.Dense(1)(nn.relu(nn.Dense(CONFIG["width"])(inputs)))


def main() -> None:
    """Train for 30 steps."""
    net, optimizer = Net(), optax.adamw(CONFIG["learning_rate"])
    parameters = net.init(jax.random.key(0), jnp.zeros((1, 8)))
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state, inputs, targets):  # noqa: ANN001, ANN202 - pytrees
        def loss(parameters):  # noqa: ANN001, ANN202
            return jnp.mean((net.apply(parameters, inputs) - targets) ** 2)

        error, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, error, optax.global_norm(gradients)

    random = np.random.default_rng(0)
    with machinelearning_run("flax", configs=CONFIG) as run:
        xprof(steps=(10, 13))
        for number in range(CONFIG["steps"]):
            run.step(number)
            inputs = random.normal(size=(CONFIG["batch"], 8)).astype(np.float32)
            targets = inputs.sum(axis=1, keepdims=True)
            parameters, state, error, norm = step(parameters, state, inputs, targets)
            # Record the arrays: the training loop does not wait for their values.
            metrics.record("loss", error, step=number)
            metrics.record("gradient_norm", norm, step=number)
    print(f"loss {float(error):.3f}")


if __name__ == "__main__":
    main()
