"""One instant by which everything about a target has to be over."""

import asyncio
import math
from collections.abc import Awaitable
from typing import TypeVar

_T = TypeVar("_T")


class Deadline:
    """An instant `seconds` from now on the event loop's clock."""

    def __init__(self, seconds: float) -> None:
        self._at = asyncio.get_running_loop().time() + seconds

    def left_s(self, *, at_most: float = math.inf) -> float:
        """Seconds that are left, never negative, at most as many as given."""
        return min(max(self._at - asyncio.get_running_loop().time(), 0.0), at_most)

    async def bound(self, work: Awaitable[_T]) -> _T:
        """Await `work`, cancelling it at the deadline. Raises `asyncio.TimeoutError`."""
        return await asyncio.wait_for(work, self.left_s())
