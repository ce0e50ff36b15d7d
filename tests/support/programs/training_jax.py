"""A small JAX training loop with a profiler server; runs under every version of JAX. Stopped by killing it.

usage: training_jax.py PORT PROGRESS_FILE [--tensorflow-importable | --idle]
"""

import sys
import time
import types
from pathlib import Path

REST_SECONDS = 0.01  # between steps, for the tests beside


def make_tensorflow_importable() -> None:
    """Simulate an installed TensorFlow, which prevents jaxlib < 0.9 from freezing in a capture."""
    parts = ["tensorflow", "python", "profiler", "trace"]
    modules = [types.ModuleType(".".join(parts[: depth + 1])) for depth in range(len(parts))]
    for module, inner, name in zip(modules, modules[1:], parts[1:], strict=False):
        setattr(module, name, inner)
    modules[-1].enabled = False  # type: ignore[attr-defined]
    sys.modules.update({module.__name__: module for module in modules})


def main(port: int, progress: Path, *, idle: bool) -> None:
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: jnp.tanh(x @ x) / 2)
    x = jnp.ones((256, 256))
    jax.profiler.start_server(port)
    number = 0
    while True:
        if not idle or number == 0:
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                x = step(x).block_until_ready()
            number += 1
            progress.write_text(str(number))
        time.sleep(REST_SECONDS)


if __name__ == "__main__":
    if "--tensorflow-importable" in sys.argv:
        make_tensorflow_importable()
    main(int(sys.argv[1]), Path(sys.argv[2]), idle="--idle" in sys.argv)
