"""A capture, once or at an interval, each time in a session of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError

from mldiagnostics_cli.interruption import run_interruptibly
from mldiagnostics_cli.output import note

if TYPE_CHECKING:
    from mldiagnostics_cli.captures.ending import CaptureEnd, CaptureWork
    from mldiagnostics_cli.interruption import Interruption

__all__ = ["run_capture"]


def run_capture(work: CaptureWork, *, every_s: float | None = None) -> CaptureEnd:
    """Capture once, or at the start of each interval until Ctrl-C.

    A capture that fails does not end it.

    Raises:
        ConfigurationError: The capture is not valid, so that it would fail each time.
        MLDiagnosticsError: It failed, and is not repeated.
    """
    if every_s is None:
        return run_interruptibly(work)
    return run_interruptibly(lambda interruption: _repeat(work, every_s, interruption))


async def _repeat(work: CaptureWork, every_s: float, interruption: Interruption) -> CaptureEnd:
    now = asyncio.get_running_loop().time
    while True:
        started = now()
        try:
            end = await work(interruption)
        except ConfigurationError:
            raise
        except MLDiagnosticsError as error:
            note(f"mldiag: {error}")
        else:
            if interruption.is_requested:
                return end
        await asyncio.sleep(max(0.0, started + every_s - now()))
