"""Retries with exponential backoff and jitter, up to a deadline."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0


async def retry(
    call: Callable[[], Awaitable[T]], *, on: type[Exception] | tuple[type[Exception], ...], until: float | None = None
) -> T:
    """Await `call()` until it succeeds, with growing, jittered pauses in between.

    Args:
        call: Starts one attempt.
        on: Exceptions to retry on; others are raised at once.
        until: Time on the event loop's clock after which no attempt starts; None retries until cancelled.

    Returns:
        The result of the first attempt that succeeds.

    Raises:
        Exception: The exception of the last attempt, one of `on`.
    """
    loop = asyncio.get_running_loop()
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return await call()
        except on:
            wait_s = pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, not a secret
            if until is not None and loop.time() + wait_s > until:
                raise
        await asyncio.sleep(wait_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
