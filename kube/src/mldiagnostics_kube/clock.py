"""The wall clock, injected: parts take a `Clock`, so that a test can give its own."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Return the current time, with its time zone. For durations use the event loop's monotonic clock."""


def utc_now() -> datetime:
    """Return the current time in UTC: the clock of a running process."""
    return datetime.now(UTC)
