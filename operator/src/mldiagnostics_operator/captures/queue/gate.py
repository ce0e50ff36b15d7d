"""The gate before the first request of a capture: applies the admission decisions."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from mldiagnostics_operator.captures.queue.admission import CaptureClaim, Quota, WaitReason, decide

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class Gate:
    """Claims that wait and claims that are inside; `on_change` gets their numbers."""

    def __init__(self, quota: Quota, on_change: Callable[[int, int], None]) -> None:
        self.quota: Final = quota
        self._on_change = on_change
        self._arrivals = 0
        self._waiting: dict[str, _Waiting] = {}
        self._inside: dict[str, CaptureClaim] = {}
        self._turns: dict[str, int] = {}

    def arrive(self) -> int:
        """Return the next place in the queue; a capture keeps it for all its claims."""
        self._arrivals += 1
        return self._arrivals

    @asynccontextmanager
    async def admitted(
        self, claim: CaptureClaim, report: Callable[[WaitReason], Awaitable[None]]
    ) -> AsyncIterator[bool]:
        """Wait for admission and be inside the gate during the block.

        Yields whether the claim had to wait. `report` is called with each new reason to wait.
        """
        waiting = self._waiting[claim.uid] = _Waiting(claim)
        try:
            self._decide()
            waited = False
            while (reason := await waiting.reasons.get()) is not None:
                waited = True
                await report(reason)
            yield waited
        finally:
            self._waiting.pop(claim.uid, None)
            self._inside.pop(claim.uid, None)
            self._decide()

    def _decide(self) -> None:
        decision = decide(
            [waiting.claim for waiting in self._waiting.values()], self._inside.values(), self.quota, self._turns
        )
        for claim in decision.start:
            self._waiting.pop(claim.uid).put(None)
            self._inside[claim.uid] = claim
            self._turns[claim.namespace] = max(self._turns.values(), default=-1) + 1
        for uid, reason in decision.waits.items():
            self._waiting[uid].put(reason)
        self._on_change(len(self._waiting), len(self._inside))


class _Waiting:
    """A claim and its queue of new reasons to wait, then None."""

    def __init__(self, claim: CaptureClaim) -> None:
        self.claim = claim
        self.reasons = asyncio.Queue[WaitReason | None]()
        self._last: WaitReason | None = None

    def put(self, reason: WaitReason | None) -> None:
        if reason is None or reason is not self._last:
            self._last = reason
            self.reasons.put_nowait(reason)
