"""One limit on the writes of all runs, which namespaces take in turn."""

from __future__ import annotations

import asyncio
from typing import Final

from mldiagnostics_operator.fair_slots import FairSlots

WRITES_PER_S: Final = 10.0
"""Writes of all runs of a small fleet."""
STATUS_S: Final = 50.0
"""Each active run has one more write in this time, so that its status is never older than a minute."""
BURST: Final = 20


class WriteRate:
    """A token bucket that grows with the fleet.

    The writes of one namespace delay another by one write.
    """

    def __init__(self, per_s: float = WRITES_PER_S, burst: int = BURST) -> None:
        self._least_per_s = self._per_s = per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at: float | None = None
        self._turns = FairSlots(1, per_namespace=1)

    def serve(self, runs: int) -> None:
        """Set the number of runs that are active, or about to have an object."""
        self._per_s = self._least_per_s + runs / STATUS_S

    async def take(self, namespace: str) -> None:
        """Wait until a namespace may write once more; its callers keep their order."""
        loop = asyncio.get_running_loop()
        async with self._turns.slot(namespace):
            self._fill(loop.time())
            if self._tokens < 1:
                await asyncio.sleep((1 - self._tokens) / self._per_s)
                self._fill(loop.time())
            self._tokens = max(self._tokens - 1, 0)

    def _fill(self, now: float) -> None:
        passed = now - (now if self._filled_at is None else self._filled_at)
        self._tokens = min(self._burst, self._tokens + passed * self._per_s)
        self._filled_at = now
