"""The wall clock, injected: parts take a `Clock`, so that a test can give its own."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

Clock = Callable[[], datetime]
"""Return the current time, with its time zone. For durations use the event loop's monotonic clock."""


def utc_now() -> datetime:
    """Return the current time in UTC: the clock of a running process."""
    return datetime.fromtimestamp(unix_now_s(), UTC)


def unix_now_s() -> float:
    """Return the current Unix time: the one clock of a running process that steps."""
    return time.time()


_SLEW: Final = 0.1


class SteadyClock:
    """The wall clock without its steps: for times whose differences are durations.

    After the clock of the machine was set, it goes a tenth faster or slower until it shows the time again. It never
    goes back.

    Args:
        wall: Unix time.
        monotonic: Seconds of a clock that nobody sets.
    """

    def __init__(self, wall: Callable[[], float] = unix_now_s, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._shown_s, self._read_s = wall(), monotonic()

    def unix_s(self) -> float:
        """Return the current Unix time."""
        now_s = self._monotonic()
        passed_s, self._read_s = max(0.0, now_s - self._read_s), now_s
        most_s = _SLEW * passed_s
        self._shown_s += passed_s
        self._shown_s += min(max(self._wall() - self._shown_s, -most_s), most_s)
        return self._shown_s

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.fromtimestamp(self.unix_s(), UTC)


def loop_time(moment: datetime, clock: Clock) -> float:
    """Return a time of day as a time of the running event loop's clock."""
    return asyncio.get_running_loop().time() + (moment - clock()).total_seconds()
