"""Storing of traces with retries until the deadline."""

import asyncio
import random

from mldiagnostics.capture import failures
from mldiagnostics.capture.deadline import Deadline
from mldiagnostics.capture.failures import StoreFailure, TargetFailed
from mldiagnostics.capture.model import StoredTrace, Target, TraceSink
from mldiagnostics.errors import StoreError

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0


class RetryingStore:
    """The sink of one run, with retries.

    It keeps the last failure for traces that were never read.
    """

    def __init__(self, sink: TraceSink) -> None:
        self._sink = sink
        self._last_failure: StoreFailure | None = None

    async def store(self, target: Target, trace: memoryview, deadline: Deadline) -> StoredTrace:
        """Store the trace; retry until the deadline unless the failure is permanent.

        Raises:
            TargetFailed: the trace was not stored.
        """
        pause_s = _FIRST_PAUSE_S
        failure: StoreFailure | None = None
        while True:
            try:
                stored = await deadline.bound(self._sink(target, trace))
            except (asyncio.TimeoutError, TimeoutError):
                raise failures.not_stored(target, failure) from None
            except StoreError as error:
                # Do not keep the error itself: its traceback holds the trace in memory.
                failure = self._last_failure = StoreFailure.of(error)
            else:
                self._last_failure = None
                return stored
            if failure.permanent or deadline.left_s() <= pause_s:
                raise failures.not_stored(target, failure)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - spreads retries, guards nothing
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def expired_unread(self, target: Target) -> TargetFailed:
        """Return the failure of a trace that waited for memory until the deadline."""
        return failures.not_stored(target, self._last_failure)
