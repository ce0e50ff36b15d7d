"""Recorded traces into the store, again and again until their deadline."""

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
    """The sink of one run, with patience; remembers its latest trouble for traces that never had their turn."""

    def __init__(self, sink: TraceSink) -> None:
        self._sink = sink
        self._trouble: StoreFailure | None = None

    async def store(self, target: Target, trace: memoryview, deadline: Deadline) -> StoredTrace:
        """Store the trace. Raises `TargetFailed`: at once for a name that is taken, else at the deadline."""
        pause_s = _FIRST_PAUSE_S
        own_trouble: StoreFailure | None = None
        while True:
            try:
                stored = await deadline.bound(self._sink(target, trace))
            except (asyncio.TimeoutError, TimeoutError):
                raise failures.not_stored(target, own_trouble) from None
            except StoreError as error:
                # Not the error itself: its traceback would keep the trace in memory.
                own_trouble = self._trouble = StoreFailure.of(error)
            else:
                self._trouble = None
                return stored
            if own_trouble.lasting or deadline.left_s() <= pause_s:
                raise failures.not_stored(target, own_trouble)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - spreads retries, guards nothing
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def never_read(self, target: Target) -> TargetFailed:
        """Return the verdict on a recorded trace that waited for others to be stored until its deadline."""
        return failures.not_stored(target, self._trouble)
