"""Repeat work that fails, so that the other work of the leader goes on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

_log: Final = logging.getLogger(__name__)

RESTART_S: Final = 10.0
"""Pause before the next start."""


async def keep_running(name: str, work: Callable[[], Awaitable[None]], *, failed: Callable[[str], None]) -> None:
    """Run the work until cancelled; when it fails or ends, run it again.

    Args:
        name: Name of the work, for the log and `failed`.
        work: The work, which must be able to start again.
        failed: Called with the name after each failure.
    """
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - captures go on after any fault of other work
            _log.exception(
                "The %(task)s failed; starting it again in %(seconds)g s", {"task": name, "seconds": RESTART_S}
            )
            failed(name)
        await asyncio.sleep(RESTART_S)
