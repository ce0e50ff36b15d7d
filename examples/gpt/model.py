"""A decoder of the GPT family in plain JAX, with Adam."""

from typing import Any

import jax
import jax.numpy as jnp
from sizes import VOCABULARY, Size

Tree = Any
"""Arrays by their names."""


def init(size: Size, seed: int) -> Tree:
    """Return the weights of a new model."""
    keys = iter(jax.random.split(jax.random.key(seed), 2 + 4 * size.layers))

    def normal(*shape: int) -> jax.Array:
        return 0.02 * jax.random.normal(next(keys), shape)

    return {
        "tokens": normal(VOCABULARY, size.width),
        "positions": normal(size.context, size.width),
        "blocks": [
            {
                "attention": normal(size.width, 3 * size.width),
                "attended": normal(size.width, size.width),
                "up": normal(size.width, 4 * size.width),
                "down": normal(4 * size.width, size.width),
            }
            for _ in range(size.layers)
        ],
    }


def loss(weights: Tree, tokens: jax.Array, size: Size) -> jax.Array:
    """Return the mean cross-entropy of the next tokens, in nats.

    Args:
        weights: The model.
        tokens: Shape (batch, context + 1).
        size: Size of the model.
    """
    hidden = weights["tokens"][tokens[:, :-1]] + weights["positions"]
    for block in weights["blocks"]:
        hidden = hidden + _attention(block, _normed(hidden), size.heads)
        hidden = hidden + jax.nn.gelu(_normed(hidden) @ block["up"]) @ block["down"]
    likely = jax.nn.log_softmax(_normed(hidden) @ weights["tokens"].T)
    return -jnp.mean(jnp.take_along_axis(likely, tokens[:, 1:, None], axis=-1))


def _normed(hidden: jax.Array) -> jax.Array:
    return hidden * jax.lax.rsqrt(jnp.mean(hidden**2, axis=-1, keepdims=True) + 1e-6)


def _attention(block: Tree, hidden: jax.Array, heads: int) -> jax.Array:
    batch, length, width = hidden.shape
    parts = (hidden @ block["attention"]).reshape(batch, length, 3, heads, width // heads)
    attended = jax.nn.dot_product_attention(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], is_causal=True)
    return attended.reshape(batch, length, width) @ block["attended"]


def step(weights: Tree, moments: Tree, tokens: jax.Array, number: jax.Array, size: Size) -> tuple[Tree, Tree, Tree]:
    """Return weights, moments and figures after one step of Adam.

    Args:
        weights: The model.
        moments: Means of the gradients and of their squares.
        tokens: Shape (batch, context + 1).
        number: Number of the step, from 0.
        size: Size of the model.
    """
    error, gradients = jax.value_and_grad(loss)(weights, tokens, size)
    first = jax.tree.map(lambda mean, gradient: 0.9 * mean + 0.1 * gradient, moments["first"], gradients)
    second = jax.tree.map(lambda mean, gradient: 0.95 * mean + 0.05 * gradient**2, moments["second"], gradients)
    time = number + 1
    warm = jnp.minimum(1.0, time / 20)

    def moved(weight: jax.Array, mean: jax.Array, square: jax.Array) -> jax.Array:
        scale = jnp.sqrt(square / (1 - 0.95**time)) + 1e-8
        return weight - warm * size.learning_rate * mean / (1 - 0.9**time) / scale

    norm = jnp.sqrt(sum(jnp.sum(gradient**2) for gradient in jax.tree.leaves(gradients)))
    figures = {"learning/loss": error, "learning/grad_norm": norm, "learning/learning_rate": warm * size.learning_rate}
    return jax.tree.map(moved, weights, first, second), {"first": first, "second": second}, figures
