"""A line of a terminal that shows what happens now, below lines that stay."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.output import PLAIN_WIDTH, note
from mldiagnostics_cli.table import cut

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


REDRAW_S = 0.2
_CLEAR = "\r\x1b[K"
_NARROWEST = 20


class LiveLine:
    """Redraws a text and the elapsed time on standard error.

    Without a terminal, only lines that stay are printed.

    Args:
        text: Returns the text as of now.
    """

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._started = time.monotonic()
        self._is_live = sys.stderr is not None and sys.stderr.isatty()

    def print(self, line: str) -> None:
        """Print a line that stays, above the live one."""
        self._clear()
        note(printable(line))

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Redraw the line while the block runs."""
        redrawing = asyncio.create_task(self._redraw()) if self._is_live else None
        try:
            yield
        finally:
            if redrawing is not None:
                redrawing.cancel()
                self._clear()

    async def _redraw(self) -> None:
        while True:
            text = printable(f"{self._text()}, {time.monotonic() - self._started:.0f} s")
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
