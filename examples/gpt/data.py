"""Batches of made-up text, which any host can read from any step on."""

import numpy as np
from sizes import Size


def text(size: Size, number: int, host: int, hosts: int) -> np.ndarray:
    """Return the batch of a host for a step: sums such as `12+7=19;`, as bytes.

    Any step can be read at any time, so a restart continues where it stopped.

    Args:
        size: Size of the model.
        number: Number of the step; below 0 for a batch of the evaluation.
        host: Index of the host.
        hosts: Number of hosts.

    Returns:
        Tokens, shape (batch, context + 1).
    """
    random = np.random.default_rng((abs(number), int(number < 0), host, hosts))
    terms = random.integers(0, 100, (size.batch_per_host, size.context, 2))
    lines = ("".join(f"{one}+{other}={one + other};" for one, other in each) for each in terms.tolist())
    return np.stack([np.frombuffer(line[: size.context + 1].encode(), np.uint8) for line in lines]).astype(np.int32)
