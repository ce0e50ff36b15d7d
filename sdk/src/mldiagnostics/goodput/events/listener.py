"""The interface between readers of logs and the history of their events; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mldiagnostics.goodput.events.event import CheckpointEvent

if TYPE_CHECKING:
    from array import array
    from collections import Counter

    from mldiagnostics.goodput.events.clocks import Clocks
    from mldiagnostics.goodput.events.event import Event


class EventListener(Protocol):
    """Takes the events of a log in any order; `History` is one."""

    ignored: Counter[str]
    """Counts the ignored lines and payloads, by reason."""

    corrected: Counter[str]
    """Counts the events that were moved because a clock was set, by reason."""

    clocks: Clocks
    """The clocks that were set."""

    def add(self, event: Event) -> None:
        """Add an event."""

    def extend(self, times: array[int], codes: bytes, args: array[int], *, rank: int = 0, run: str = "") -> None:
        """Add many events whose arguments are numbers."""

    def begin_again(self) -> bool:
        """Forget all events if a clock was set after some of them; return whether it did."""


class ShiftingListener:
    """Passes events on to another listener, moved by some microseconds."""

    def __init__(self, listener: EventListener, by: int) -> None:
        self._listener = listener
        self._by = by
        self._reason = f"moved by {by / 1e6:+,.3f} s: the clock of the host was set while the process recorded"
        self.ignored: Counter[str] = listener.ignored
        self.corrected: Counter[str] = listener.corrected
        self.clocks: Clocks = listener.clocks

    def add(self, event: Event) -> None:
        """See `EventListener.add`."""
        arg = event.arg
        if isinstance(arg, CheckpointEvent):
            arg = arg._replace(until=arg.until + self._by)
        self._listener.add(event._replace(t=event.t + self._by, arg=arg))
        self.corrected[self._reason] += 1

    def extend(self, times: array[int], codes: bytes, args: array[int], *, rank: int = 0, run: str = "") -> None:
        """See `EventListener.extend`."""
        shifted = times[:]
        for row, t in enumerate(times):
            shifted[row] = t + self._by
        self._listener.extend(shifted, codes, args, rank=rank, run=run)
        self.corrected[self._reason] += len(times)

    def begin_again(self) -> bool:
        """See `EventListener.begin_again`."""
        return self._listener.begin_again()
