"""One instant by which everything about a target has to be over."""

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class Deadline:
    """An instant `seconds` from now on the event loop's clock."""

    def __init__(self, seconds: float) -> None:
        self._at = asyncio.get_running_loop().time() + seconds

    def left_s(self, *, at_most: float = math.inf) -> float:
        """Seconds that are left, never negative, at most as many as given."""
        return min(max(self._at - asyncio.get_running_loop().time(), 0.0), at_most)

    async def bound(self, work: Coroutine[Any, Any, _T], *, at_most: float = math.inf) -> _T:
        """Await `work`, cancelling it at the deadline or after `at_most` seconds. Raises `asyncio.TimeoutError`.

        Unlike `asyncio.wait_for` before Python 3.12 it never swallows a cancellation.
        """
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=self.left_s(at_most=at_most))
        finally:
            in_time = task.done()
            if not in_time:
                task.cancel()
                await asyncio.wait({task})
        if not in_time:
            raise asyncio.TimeoutError
        return task.result()
