"""Train in small steps: attempt 0 profiles itself and trains until it is stopped, later attempts end by themselves."""

import itertools
import os
import time

import jax
import jax.numpy as jnp
from mldiagnostics import machinelearning_run, metrics, xprof

STEPS_OF_LATER_ATTEMPTS = 20
REST_S = 0.1


def main() -> None:
    """Train as one host of a run; hosts do not wait for each other."""
    is_first = os.environ["MLDIAG_ATTEMPT"] == "0"
    train = jax.jit(lambda weights: jnp.tanh(weights @ weights))
    with machinelearning_run("restarted", on_demand_xprof=True) as run:
        if is_first:
            xprof(steps=(5, 7))
        weights = jnp.eye(64)
        for number in itertools.count() if is_first else range(STEPS_OF_LATER_ATTEMPTS):
            run.step(number)
            weights = train(weights).block_until_ready()
            metrics.record("loss", float(weights[0, 0]), step=number)
            time.sleep(REST_S)


if __name__ == "__main__":
    main()
