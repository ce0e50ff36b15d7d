"""Write recent records while they are made faster than they can be written.

A full buffer holds the records of several seconds, in which `kill -9` would lose them. Where new records find no room,
some are lost anyway: the oldest metrics then make room, and the buffer is small until it is no longer full.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.pipeline.buffer import Buffer
    from mldiagnostics.pipeline.sink_worker import SinkWorker

PASS_S = 0.1
"""Seconds after which a pass skips its other metrics, if new records find no room."""

OVERLOAD_CAPACITY = 8192
"""Capacity of the buffer during an overload: small, as each skipped metric costs time too."""

CALM_S = 1.0
"""Seconds without an overflow after which the buffer is large again."""

AHEAD = 256
"""Number of records that wait for the fastest sink, beyond which the drain lets it work."""

_FULL_SHARE = 0.75
_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.016


class Overload:
    """Decides when a pass of the drain waits for its sinks, and when it skips metrics."""

    def __init__(self, buffer: Buffer, workers: Sequence[SinkWorker]) -> None:
        self._buffer = buffer
        self._workers = workers
        self._begin = self._full_at = -math.inf
        self._is_late = False

    def note_full(self) -> None:
        """Note that a record has found no room."""
        self._full_at = time.monotonic()

    def begin_pass(self) -> None:
        """Begin a pass; after a while without an overflow the buffer is large again."""
        self._begin, self._is_late = time.monotonic(), False
        if self._begin - self._full_at > CALM_S:
            self._buffer.limit(None)

    def is_late(self) -> bool:
        """Return whether this pass skips its other metrics.

        Waits until a sink has few records left, at most until the pass is late: in the queue of a slow sink records can
        no longer be skipped.
        """
        pause_s = _PAUSE_S
        while not self._is_late:
            if time.monotonic() >= self._begin + PASS_S:
                self._skip_if_full()
                break
            if min((worker.waiting for worker in self._workers), default=0) <= AHEAD:
                break
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return self._is_late

    def _skip_if_full(self) -> None:
        buffer = self._buffer
        if self._full_at >= self._begin and len(buffer.entries) >= _FULL_SHARE * buffer.capacity:
            self._is_late = True
            buffer.limit(OVERLOAD_CAPACITY)
