"""Progress of a capture by address: a line for each host, and one that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.capture import TargetState
from mldiagnostics.text.counts import counted_of

from mldiagnostics_cli.captures.live_line import LiveLine
from mldiagnostics_cli.values import size

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mldiagnostics.capture import Outcome


class CaptureProgress:
    """Shows outcomes as they arrive.

    On a terminal it also shows the time and the number of hosts that are left.
    """

    def __init__(self, hosts: int, duration_ms: int) -> None:
        self._hosts, self._duration_ms = hosts, duration_ms
        self._ended = 0
        self._line = LiveLine(self._text)
        self.is_cancelled = False

    def show(self, outcome: Outcome) -> None:
        """Print the outcome of one host."""
        self._ended += 1
        detail = size(outcome.bytes) if outcome.state is TargetState.CAPTURED else outcome.message
        self._line.print(f"{self._ended}/{self._hosts} {outcome.target.address}  {outcome.state}  {detail}")

    def shown(self) -> AbstractAsyncContextManager[None]:
        """Redraw the line that counts while the block runs."""
        return self._line.shown()

    def _text(self) -> str:
        doing = "stopping" if self.is_cancelled else f"recording {self._duration_ms / 1000:g} s"
        return f"{doing}, {counted_of(self._ended, self._hosts, 'host')} done"
