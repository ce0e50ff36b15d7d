"""A clock that nobody sets, and how far the wall clock is ahead of it: where that changes, the wall clock was set."""

from __future__ import annotations

import time
from functools import partial

__all__ = ["STEP_S", "clock_ahead", "steady"]

_HAS_BOOT_TIME = hasattr(time, "CLOCK_BOOTTIME")

steady = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if _HAS_BOOT_TIME else time.monotonic
"""Seconds since some moment. On Linux they also count while the machine is suspended, as the wall clock does."""

STEP_S = 0.05 if _HAS_BOOT_TIME else 1.0
"""What the clocks differ by more than this is a step of the wall clock.

Linux adjusts the rates of both clocks alike, so that they differ by steps only; elsewhere they may drift apart.
"""

_TRIES = 5


def clock_ahead() -> float:
    """Return by how many seconds the wall clock is ahead, though the thread may be interrupted between two readings."""
    found = []
    for _ in range(_TRIES):
        before, now, after = steady(), time.time(), steady()
        found.append((after - before, now - (before + after) / 2))
    return min(found)[1]
