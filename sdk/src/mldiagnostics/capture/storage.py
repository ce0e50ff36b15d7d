"""Storing of traces with retries until the deadline."""

import asyncio
import random

from mldiagnostics.capture import failures
from mldiagnostics.capture.deadline import TIMEOUTS, Deadline
from mldiagnostics.capture.failures import StoreFailure
from mldiagnostics.capture.model import StoredTrace, Target, TraceSink
from mldiagnostics.errors import StoreError

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0


class RetryingStore:
    """The sink of one run, with retries."""

    def __init__(self, sink: TraceSink) -> None:
        self._sink = sink

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
            except TIMEOUTS:
                raise failures.not_stored(target, failure) from None
            except StoreError as error:
                # Do not keep the error itself: its traceback holds the trace in memory.
                failure = StoreFailure.of(error)
            else:
                return stored
            if failure.permanent or deadline.left_s() <= pause_s:
                raise failures.not_stored(target, failure)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - spreads retries, guards nothing
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
