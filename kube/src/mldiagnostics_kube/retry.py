"""Repeat what may pass: an API server that restarts is waited for, up to a moment that the caller names."""

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
    """Return the call's result, repeating it on the exceptions `on` with growing, jittered pauses.

    `until` is a moment on the event loop's clock; None repeats until cancelled. The last failure is raised.
    """
    loop = asyncio.get_running_loop()
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return await call()
        except on:
            wait_s = pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, guards nothing
            if until is not None and loop.time() + wait_s > until:
                raise
        await asyncio.sleep(wait_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
