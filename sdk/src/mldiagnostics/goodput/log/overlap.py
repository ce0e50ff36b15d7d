"""Incremental reads of a service that shows entries late."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events.clocks import CLOCK_STEP
from mldiagnostics.goodput.events.conversion import parse
from mldiagnostics.goodput.events.listener import ShiftingListener

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.events.listener import EventListener
    from mldiagnostics.goodput.log.lines import LoggedPayload

OVERLAP = timedelta(minutes=10)
"""Entries become visible this late: writers wait for batches, spools for the network."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class OverlapWindow:
    """Computes the start of each read, and skips entries that were read before.

    Each read overlaps the last one. `retention` is how far back the first read goes; None reads everything.
    """

    def __init__(self, retention: timedelta | None = None) -> None:
        self.last_read: datetime | None = None
        """Moment of the last read."""
        self.since: datetime | None = None
        """Start of the first read."""
        self._retention = retention
        self._seen: set[object] = set()
        self._faults: set[int] = set()

    def start(self, now: datetime) -> datetime:
        """Return the start of a read at `now`."""
        if self.last_read is not None:
            return min(self.last_read, now) - OVERLAP
        if self.since is None:
            self.since = _EPOCH if self._retention is None else now - self._retention
        return self.since

    def begin_again(self) -> None:
        """Read everything again, from the start of the first read."""
        self.last_read = None
        self._seen, self._faults = set(), set()

    def add_new(self, entries: Iterable[LoggedPayload], now: datetime, listener: EventListener) -> None:
        """Add the new entries of a read at `now` to a listener."""
        recent = (now - 3 * OVERLAP).timestamp()  # the next read may repeat these
        seen: set[object] = set()
        for entry in entries:
            payload = entry.payload if isinstance(entry.payload, dict) else {}
            if CLOCK_STEP in payload:
                listener.clocks.learn(payload)
                continue
            shift = listener.clocks.shift(payload.get("event_id")) if listener.clocks else 0
            target = ShiftingListener(listener, shift) if shift else listener
            events = parse(entry.payload, rank=entry.rank, run=entry.run, logged=entry.logged)
            if isinstance(events, str):
                fault = hash((events, repr(entry.payload)))
                if fault not in self._faults:
                    listener.ignored[events] += 1
                    self._faults.add(fault)
                continue
            for event in events:
                if event not in self._seen:
                    target.add(event)
                if (event.t / 1e6 if entry.logged is None else entry.logged) >= recent:
                    seen.add(event)
        self._seen = seen
        self.last_read = now
