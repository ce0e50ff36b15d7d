"""A few steps of a framework, recorded by our adapter, beside the clock of the program itself.

usage: traced_steps.py FRAMEWORK FOLDER ROWS     write FRAMEWORK.xplane.pb, and print times as JSON
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[3] / "sdk/src"))

from mldiagnostics.profiling.frameworks import recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Fetching = Callable[[], AbstractContextManager[None]]
    Train = Callable[[int, Fetching], None]

STEPS = 16
FIRST = 100
"""Number of the first step."""
INPUT_S = 0.02
WIDTH = 256
FLAGS = {"jax": "--xla_force_host_platform_device_count=2", "jax_alone": "", "torch": "", "torch_xla": ""}
"""XLA's flags of each framework."""


def jax(rows: int) -> Train:
    """Two devices that reduce gradients; steps and input have annotations."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("x",))
    split = NamedSharding(mesh, PartitionSpec("x"))
    whole = NamedSharding(mesh, PartitionSpec())

    def update(weights: jax.Array, batch: jax.Array) -> jax.Array:
        return weights - 0.01 * jax.grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(weights)

    compiled = jax.jit(update, in_shardings=(whole, split), out_shardings=whole)
    state = [jax.device_put(np.full((WIDTH, WIDTH), 0.01, np.float32), whole)]

    def train(number: int, fetching: Fetching) -> None:
        with jax.profiler.StepTraceAnnotation("amber", step_num=number):
            with jax.profiler.TraceAnnotation("basalt"), fetching():
                batch = jax.device_put(np.ones((rows, WIDTH), np.float32), split)
            state[0] = compiled(state[0], batch)
            state[0].block_until_ready()

    return train


def jax_alone(_: int) -> Train:
    """One device, and no annotation at all."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    update = jax.jit(lambda weights, batch: weights - 0.01 * jnp.tanh(batch @ weights))
    state = [jnp.full((WIDTH, WIDTH), 0.01)]

    def train(_: int, fetching: Fetching) -> None:
        with fetching():
            batch = jax.device_put(np.ones((WIDTH, WIDTH), np.float32))
        state[0] = update(state[0], batch)
        state[0].block_until_ready()

    return train


def torch(_: int) -> Train:
    """A loader and an optimizer of PyTorch, which mark input and steps themselves."""
    import torch

    model = torch.nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ways: list[Fetching] = []

    class Numbers(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return FIRST + 10 * STEPS

        def __getitem__(self, _: int) -> torch.Tensor:
            with ways[-1]():
                return torch.ones(WIDTH)

    batches = iter(torch.utils.data.DataLoader(Numbers()))

    def train(_: int, fetching: Fetching) -> None:
        ways.append(fetching)
        loss = model(next(batches)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train


def torch_xla(_: int) -> Train:
    """PyTorch on XLA's CPU device."""
    os.environ.setdefault("PJRT_DEVICE", "CPU")
    import torch
    import torch_xla
    from torch_xla.debug import profiler

    weights = [torch.full((WIDTH, WIDTH), 0.01, device=torch_xla.device())]

    def train(number: int, fetching: Fetching) -> None:
        with profiler.StepTrace("amber", step_num=number):
            with fetching():
                batch = torch.ones(WIDTH, WIDTH).to(torch_xla.device())
            weights[0] = weights[0] - 0.01 * torch.tanh(batch @ weights[0])
        torch_xla.sync()
        weights[0].cpu()

    return train


def main(framework: str, folder: Path, rows: int) -> None:
    """Train and record; print starts of steps and lengths of inputs."""
    train = globals()[framework](rows)
    starts: list[float] = []
    inputs: list[float] = []

    @contextmanager
    def fetching() -> Iterator[None]:
        start = time.perf_counter()
        time.sleep(INPUT_S)
        yield
        inputs.append(time.perf_counter() - start)

    def run(number: int) -> None:
        starts.append(time.perf_counter())
        train(number, fetching)

    for number in range(3):
        run(number)
    starts.clear()
    inputs.clear()
    recording = recorder("PYTORCH" if "torch" in framework else framework.partition("_")[0]).start()
    for number in range(FIRST, FIRST + STEPS):
        run(number)
    (folder / f"{framework}.xplane.pb").write_bytes(recording.stop())
    print(json.dumps({"starts": starts, "inputs": inputs}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
