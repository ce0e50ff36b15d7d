"""The wall clock, injected: parts take a `Clock`, so that a test can give its own."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Return the current time, with its time zone. For durations use the event loop's monotonic clock."""


def utc_now() -> datetime:
    """Return the current time in UTC: the clock of a running process."""
    return datetime.now(UTC)


def loop_time(moment: datetime, clock: Clock) -> float:
    """Return a time of day as a time of the running event loop's clock."""
    return asyncio.get_running_loop().time() + (moment - clock()).total_seconds()
