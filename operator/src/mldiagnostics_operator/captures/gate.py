"""The gate that every capture passes before its first request: holds back those that admission lets wait."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mldiagnostics_operator.captures.admission import CaptureClaim, Quota, WaitReason, decide

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class Gate:
    """Claims that wait and claims that are inside; `changed` is told how many of each."""

    def __init__(self, quota: Quota, changed: Callable[[int, int], None]) -> None:
        self._quota = quota
        self._changed = changed
        self._arrivals = 0
        self._waiting: dict[str, _Waiting] = {}
        self._inside: dict[str, CaptureClaim] = {}
        self._turns: dict[str, int] = {}

    def arrive(self) -> int:
        """Hand out the next place in line; a capture keeps it when it claims again with other pods."""
        self._arrivals += 1
        return self._arrivals

    @asynccontextmanager
    async def passed(self, claim: CaptureClaim, waits: Callable[[WaitReason], Awaitable[None]]) -> AsyncIterator[bool]:
        """Be inside the gate for the duration of the block, which is told whether the claim had to wait.

        `waits` is called with each new reason to wait.
        """
        waiting = self._waiting[claim.uid] = _Waiting(claim)
        try:
            self._decide()
            waited = False
            while (reason := await waiting.news.get()) is not None:
                waited = True
                await waits(reason)
            yield waited
        finally:
            self._waiting.pop(claim.uid, None)
            self._inside.pop(claim.uid, None)
            self._decide()

    def _decide(self) -> None:
        verdict = decide(
            [line.claim for line in self._waiting.values()], self._inside.values(), self._quota, self._turns
        )
        for claim in verdict.start:
            self._waiting.pop(claim.uid).tell(None)
            self._inside[claim.uid] = claim
            self._turns[claim.namespace] = max(self._turns.values(), default=-1) + 1
        for uid, reason in verdict.waits.items():
            self._waiting[uid].tell(reason)
        self._changed(len(self._waiting), len(self._inside))


class _Waiting:
    """A claim and what it has yet to hear: reasons to wait, then None."""

    def __init__(self, claim: CaptureClaim) -> None:
        self.claim = claim
        self.news = asyncio.Queue[WaitReason | None]()
        self._told: WaitReason | None = None

    def tell(self, reason: WaitReason | None) -> None:
        if reason is None or reason is not self._told:
            self._told = reason
            self.news.put_nowait(reason)
