"""A wall clock that a test can step: the offset in seconds is in a file. Python imports this module at start.

`time.time` stays: gRPC computes deadlines with it, and reads the machine's clock for the comparison.
"""

import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

with suppress(ImportError):
    from mldiagnostics_kube.process import clock

    OFFSET = Path("/var/lib/mldiagnostics/clock-offset")
    now, nanoseconds = clock.utc_now, time.time_ns

    def offset() -> int:
        """Return the seconds that the clock is ahead."""
        with suppress(OSError, ValueError):
            return int(OFFSET.read_text())
        return 0

    def stepped_now() -> datetime:
        """Return the stepped time, in UTC."""
        return now() + timedelta(seconds=offset())

    clock.utc_now = stepped_now
    time.time_ns = lambda: nanoseconds() + offset() * 10**9
