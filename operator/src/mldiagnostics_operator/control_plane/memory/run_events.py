"""Goodput events of one run: those in memory, and those in its journal; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_operator.control_plane.limits import MAX_EVENTS_OF_RUN
from mldiagnostics_operator.control_plane.memory.event_log import EventLog, ProcessName
from mldiagnostics_operator.control_plane.memory.journal_page import EventsMoment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_api.reports.models import Report

    from mldiagnostics_operator.control_plane.memory.event_log import Segment
    from mldiagnostics_operator.control_plane.memory.packed_events import PackedEvents


class RunEvents:
    """The logs of the processes of a run, by incarnation."""

    def __init__(self) -> None:
        self._logs: dict[str, EventLog] = {}
        self.sent = EventsMoment()
        """The newest report whose goodput events are all in memory."""
        self.until = EventsMoment()
        """The newest report whose goodput events are all in the journal."""

    @property
    def open_bytes(self) -> int:
        """Bytes of event lines in memory."""
        return sum(log.open_bytes for log in self._logs.values())

    @property
    def room(self) -> int:
        """Number of goodput events that the run may still have."""
        return max(0, MAX_EVENTS_OF_RUN - sum(each.known for each in self._logs.values()))

    def known(self, incarnation: str) -> int:
        """Return how many events of a process are known."""
        log = self._logs.get(incarnation)
        return log.known if log else 0

    def persisted(self, incarnation: str) -> int:
        """Return how many events of a process are in the journal."""
        log = self._logs.get(incarnation)
        return log.persisted if log else 0

    def add(self, process: ProcessName, events: PackedEvents) -> bool:
        """Add events that continue the log of a process; return whether any is new."""
        if not events.number:
            return False
        return self._logs.setdefault(process.incarnation, EventLog()).add(process, events) > 0

    def note_sent(self, report: Report, first_received: float, events: PackedEvents | None) -> None:
        """Note when the leader sent a report whose events are all in memory."""
        is_whole = events is None or (events.whole and self.known(report.incarnation) >= events.first + events.number)
        if report.run is not None and is_whole:
            self.sent = max(self.sent, EventsMoment(report.attempt, first_received, report.sequence, report.sent))

    def segments(self, named: Callable[[str], ProcessName]) -> dict[str, Segment]:
        """Return the files that the journal has to write, by incarnation.

        Args:
            named: Returns the process of an incarnation.
        """
        return {name: each for name, log in self._logs.items() if (each := log.segment(named(name)))}

    def written(self, incarnation: str, segment: Segment, *, size: int, now: float, foreign: bool) -> None:
        """Note that a segment is persisted; see `EventLog.written`."""
        if log := self._logs.get(incarnation):
            log.written(segment, size=size, now=now, foreign=foreign)

    def forget(self, incarnation: str) -> bool:
        """Forget a process if all its events are persisted; return whether they are."""
        if self.known(incarnation) != self.persisted(incarnation):
            return False
        self._logs.pop(incarnation, None)
        return True

    def restore(self, counts: Mapping[str, int]) -> None:
        """Add the counts of the journal, by incarnation; greater ones in memory win."""
        for incarnation, count in counts.items():
            log = self._logs.get(incarnation)
            if log is None or log.known < count:
                self._logs[incarnation] = EventLog(count)

    def note_until(self, until: EventsMoment) -> bool:
        """Note that the journal has all events of a report; return whether it is newer."""
        self.sent = max(self.sent, until)
        is_newer = until > self.until
        self.until = max(self.until, until)
        return is_newer
