"""Sizes of the model."""

from dataclasses import dataclass

VOCABULARY = 256
"""Bytes."""


@dataclass(frozen=True)
class Size:
    """Hyperparameters of a model.

    Args:
        layers: Blocks.
        width: Features of a token.
        heads: Heads of the attention.
        context: Tokens of a sequence.
        batch_per_host: Sequences of a step, on each host.
        learning_rate: Step size of Adam.
    """

    layers: int
    width: int
    heads: int
    context: int
    batch_per_host: int
    learning_rate: float

    @property
    def parameters(self) -> int:
        """Number of weights in matrices, which decide the work of a step."""
        return 12 * self.layers * self.width**2 + VOCABULARY * self.width

    @property
    def flops_per_token(self) -> int:
        """Floating-point operations of a training step for one token (Kaplan et al., arXiv 2001.08361, table 1)."""
        return 6 * self.parameters + 12 * self.layers * self.context * self.width


SIZES = {
    "tiny": Size(layers=2, width=64, heads=4, context=64, batch_per_host=8, learning_rate=3e-3),  # a CPU
    "small": Size(layers=12, width=768, heads=12, context=1024, batch_per_host=16, learning_rate=6e-4),  # a GPU
    "1b": Size(layers=24, width=2048, heads=16, context=2048, batch_per_host=16, learning_rate=2e-4),  # a TPU slice
}
