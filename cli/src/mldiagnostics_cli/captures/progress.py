"""Progress of a capture on standard error: a line for each host, and one that counts."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mldiagnostics.capture import TargetState
from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.output import PLAIN_WIDTH, note
from mldiagnostics_cli.table import cut
from mldiagnostics_cli.values import size

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mldiagnostics.capture import Outcome

__all__ = ["CaptureProgress"]

REDRAW_S = 0.2
_CLEAR = "\r\x1b[K"
_NARROWEST = 20


class CaptureProgress:
    """Shows outcomes as they arrive; on a terminal also the time and the number of hosts that are left."""

    def __init__(self, hosts: int, duration_ms: int) -> None:
        self._hosts, self._duration_ms = hosts, duration_ms
        self._ended = 0
        self._started = time.monotonic()
        self._is_live = sys.stderr is not None and sys.stderr.isatty()
        self.is_cancelled = False

    def show(self, outcome: Outcome) -> None:
        """Print the outcome of one host."""
        self._ended += 1
        detail = size(outcome.bytes) if outcome.state is TargetState.CAPTURED else outcome.message
        self._clear()
        note(printable(f"{self._ended}/{self._hosts} {outcome.target.address}  {outcome.state}  {detail}"))

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Redraw the line that counts while the block runs."""
        redrawing = asyncio.create_task(self._redraw()) if self._is_live else None
        try:
            yield
        finally:
            if redrawing is not None:
                redrawing.cancel()
                self._clear()

    async def _redraw(self) -> None:
        while True:
            elapsed = time.monotonic() - self._started
            doing = "stopping" if self.is_cancelled else f"recording {self._duration_ms / 1000:g} s"
            text = f"{doing}, {self._ended} of {self._hosts} hosts done, {elapsed:.0f} s"
            width = max(_NARROWEST, _columns_of_stderr() - 1)
            sys.stderr.write(f"{_CLEAR}{cut(text, width)}")
            sys.stderr.flush()
            await asyncio.sleep(REDRAW_S)

    def _clear(self) -> None:
        if self._is_live:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _columns_of_stderr() -> int:
    return os.get_terminal_size(sys.stderr.fileno()).columns or PLAIN_WIDTH
