"""The deadline of a target."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

TIMEOUTS = (asyncio.TimeoutError, TimeoutError)
"""One class since Python 3.11."""


class Deadline:
    """A moment `seconds` from now on the event loop's clock."""

    def __init__(self, seconds: float) -> None:
        self._at = asyncio.get_running_loop().time() + seconds

    def left_s(self, *, at_most: float = math.inf) -> float:
        """Return the seconds left, between 0 and `at_most`."""
        return min(max(self._at - asyncio.get_running_loop().time(), 0.0), at_most)

    def call(self, function: Callable[[], None]) -> asyncio.TimerHandle:
        """Call a function at the deadline unless the returned handle is cancelled."""
        return asyncio.get_running_loop().call_at(self._at, function)

    async def bound(self, coroutine: Coroutine[Any, Any, _T], *, at_most: float = math.inf) -> _T:
        """Await the coroutine; cancel it at the deadline or after `at_most` seconds.

        Unlike `asyncio.wait_for` before Python 3.12, this never swallows a cancellation.

        Raises:
            asyncio.TimeoutError: the coroutine was cancelled.
        """
        task = asyncio.ensure_future(coroutine)
        try:
            await asyncio.wait({task}, timeout=self.left_s(at_most=at_most))
        finally:
            in_time = task.done()
            if not in_time:
                task.cancel()
                await asyncio.wait({task})
        try:
            if not in_time:
                raise asyncio.TimeoutError
            return task.result()
        finally:
            del task  # its error refers to this frame: together they would keep the caller's memory until a collection
