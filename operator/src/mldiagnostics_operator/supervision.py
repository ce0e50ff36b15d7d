"""Repeat work that fails, so that the other work of the leader goes on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

_log: Final = logging.getLogger(__name__)


async def keep_running(
    name: str, work: Callable[[], Awaitable[None]], *, failed: Callable[[str], None], pause_s: float
) -> None:
    """Run the work until cancelled; when it fails or ends, run it again.

    Args:
        name: Name of the work, for the log and `failed`.
        work: The work, which must be able to start again.
        failed: Called with the name after each failure.
        pause_s: Pause in seconds before the next start.
    """
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - captures go on after any fault of other work
            _log.exception(
                "The %(task)s failed; starting it again in %(seconds)g s", {"task": name, "seconds": pause_s}
            )
            failed(name)
        await asyncio.sleep(pause_s)
