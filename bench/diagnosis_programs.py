"""Training programs with places for faults: several layouts of collectives, launches and annotations."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 128
BURNT = 256
BATCH = 64
LAYERS = 4
STYLES = 3


@dataclass
class Program:
    """A program that all hosts execute together; its state is the parameters."""

    function: Callable[..., Any]
    state: list[jax.Array]
    split: NamedSharding
    reads_loss: bool
    """Copy the loss to the host in each step."""
    marks_input: bool
    """Whether an annotation surrounds the input."""
    has_places: bool
    """Whether the slow device function can be inside of it."""
    has_callback: bool
    options: dict[tuple[int, int, int], jax.Array] = field(default_factory=dict)
    """Arrays that say how slow the program is, so that a step transfers only its input."""

    def step(self, batch: jax.Array, turns: tuple[int, int], delay_s: float) -> jax.Array:
        """Update the parameters; return the loss."""
        wanted = (*turns, round(delay_s * 1e6))
        if wanted not in self.options:
            self.options[wanted] = self.on_device(np.array([wanted], np.float32))
        self.state, loss = self.function(self.state, batch, self.options[wanted])
        return loss

    def on_device(self, data: np.ndarray) -> jax.Array:
        """Return the global array of which this host has a part."""
        return jax.make_array_from_process_local_data(self.split, data)

    def parameters(self) -> list[jax.Array]:
        """Return the parameters on this host."""
        return [each.addressable_data(0) for each in self.state]


def burn(matrix: Any, turns: Any) -> Any:
    """Multiply matrices so many times."""
    return jax.lax.fori_loop(0, turns, lambda _, x: jnp.tanh(x @ x) / BURNT, matrix)


@partial(jax.custom_vjp)
def _slow(x: Any, turns: Any) -> Any:
    return x + 0 * burn(jnp.ones((BURNT, BURNT)), turns[0, 0].astype(int))[0, 0]


def _slow_forward(x: Any, turns: Any) -> tuple[Any, Any]:
    return _slow(x, turns), turns


def _slow_backward(turns: Any, gradient: Any) -> tuple[Any, Any]:
    extra = burn(jnp.ones((BURNT, BURNT)) * gradient[0, 0], turns[0, 1].astype(int))[0, 0]
    return gradient + 0 * extra, jnp.zeros_like(turns)


_slow.defvjp(_slow_forward, _slow_backward)


@partial(jax.custom_vjp)
def _reduced(weights: Any) -> Any:
    return weights


_reduced.defvjp(lambda weights: (weights, None), lambda _, gradient: (jax.lax.pmean(gradient, "host"),))


def _wait(delay_us: Any) -> Any:
    time.sleep(float(delay_us) / 1e6)
    return np.float32(0)


def _loss(state: Any, batch: Any, own: Any, *, has_callback: bool, by_layer: bool) -> Any:
    x = batch
    if has_callback:
        x = x + jax.pure_callback(_wait, jax.ShapeDtypeStruct((), jnp.float32), own[0, 2])
    for layer, weights in enumerate(state):
        x = jnp.tanh(x @ (_reduced(weights) if by_layer else weights))
        x = _slow(x, own) if layer == 1 else x
    return jnp.mean((x - batch) ** 2)


def build(style: int, name: str) -> Program:
    """Return a program of one of the styles, under a name."""
    mesh = Mesh(np.array(jax.devices()), ("host",))
    split, whole = NamedSharding(mesh, PartitionSpec("host")), NamedSharding(mesh, PartitionSpec())
    rolls = np.random.default_rng(0)
    state = [jax.device_put(rolls.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)).astype(np.float32), whole)] * LAYERS

    def local(state: Any, batch: Any, own: Any) -> Any:
        loss = partial(_loss, has_callback=style == 2, by_layer=style == 2)
        value, gradients = jax.value_and_grad(loss)(state, batch, own)
        gradients = gradients if style == 2 else jax.lax.pmean(gradients, "host")
        return [w - 0.01 * g for w, g in zip(state, gradients, strict=True)], jax.lax.pmean(value, "host")

    def automatic(state: Any, batch: Any, own: Any) -> Any:
        def loss(state: Any) -> Any:
            x = batch
            for weights in state:
                x = jnp.tanh(x @ weights)
            return jnp.mean((x - batch) ** 2) + 0 * own.sum()

        value, gradients = jax.value_and_grad(loss)(state)
        return [w - 0.01 * g for w, g in zip(state, gradients, strict=True)], value

    function: Any = automatic
    if style != 1:
        specs = (PartitionSpec(), PartitionSpec("host"), PartitionSpec("host"))
        function = jax.shard_map(
            local, mesh=mesh, in_specs=specs, out_specs=(PartitionSpec(), PartitionSpec()), check_vma=False
        )

    def update(*arguments: Any) -> Any:
        return function(*arguments)

    update.__name__ = name
    return Program(
        jax.jit(update, in_shardings=(whole, split, split), out_shardings=(whole, whole)),
        state,
        split,
        reads_loss=style == 1,
        marks_input=style != 1,
        has_places=style != 1,
        has_callback=style == 2,
    )
