"""A steady clock, and the offset of the wall clock from it."""

from __future__ import annotations

import time
from functools import partial

_HAS_BOOT_TIME = hasattr(time, "CLOCK_BOOTTIME")

steady = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if _HAS_BOOT_TIME else time.monotonic
"""Seconds since a fixed time; on Linux including the time while the machine is suspended."""

STEP_S = 0.05 if _HAS_BOOT_TIME else 1.0
"""A change of the offset by more than this is a step of the wall clock, in seconds.

Linux adjusts the rates of both clocks alike, so the offset changes by steps only; elsewhere they may drift apart.
"""

_TRIES = 5


def clock_ahead() -> float:
    """Return the seconds by which the wall clock is ahead of the steady one.

    Of several readings the fastest counts, as the thread may be interrupted between two readings.
    """
    readings = []
    for _ in range(_TRIES):
        before, now, after = steady(), time.time(), steady()
        readings.append((after - before, now - (before + after) / 2))
    return min(readings)[1]
