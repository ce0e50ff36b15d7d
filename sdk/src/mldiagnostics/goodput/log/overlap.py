"""Asking a service for what is new in a log, without losing what it shows late: each answer overlaps the one before."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from mldiagnostics.goodput.clocks import CLOCK_STEP
from mldiagnostics.goodput.listener import ShiftingListener
from mldiagnostics.goodput.payload import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.listener import EventListener
    from mldiagnostics.goodput.log.lines import LoggedPayload

OVERLAP = timedelta(minutes=10)
"""How late an entry may become visible: writers wait for batches, spools for a network that is back."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class OverlapWindow:
    """From when to ask, and what of an answer is new. `retention` is how far back the first answer goes, None: all."""

    def __init__(self, retention: timedelta | None = None) -> None:
        self.asked: datetime | None = None
        """When it was asked last."""
        self.since: datetime | None = None
        """From when on it was asked first."""
        self._retention = retention
        self._seen: set[object] = set()
        self._faults: set[int] = set()

    def start(self, now: datetime) -> datetime:
        """Return from when on to ask, if it is `now`."""
        if self.asked is not None:
            return min(self.asked, now) - OVERLAP
        if self.since is None:
            self.since = _EPOCH if self._retention is None else now - self._retention
        return self.since

    def begin_again(self) -> None:
        """Ask for everything again, from as far back as the first time."""
        self.asked = None
        self._seen, self._faults = set(), set()

    def take(self, answer: Iterable[LoggedPayload], now: datetime, listener: EventListener) -> None:
        """Feed what is new in the answer to the question of `now`."""
        recent = (now - 3 * OVERLAP).timestamp()  # what the next answer may repeat
        seen: set[object] = set()
        for told in answer:
            payload = told.payload if isinstance(told.payload, dict) else {}
            if CLOCK_STEP in payload:
                listener.clocks.learn(payload)
                continue
            shift = listener.clocks.shift(payload.get("event_id")) if listener.clocks else 0
            hears = ShiftingListener(listener, shift) if shift else listener
            found = parse(told.payload, rank=told.rank, run=told.run, logged=told.logged)
            if isinstance(found, str):
                fault = hash((found, repr(told.payload)))
                if fault not in self._faults:
                    listener.ignored[found] += 1
                    self._faults.add(fault)
                continue
            for event in found:
                if event not in self._seen:
                    hears.add(event)
                if (event.t / 1e6 if told.logged is None else told.logged) >= recent:
                    seen.add(event)
        self._seen = seen
        self.asked = now
