"""Goodput events of one process as lines of its journal; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics.control_plane.packing import ClockStep
from mldiagnostics.goodput.clocks import CLOCK_STEP
from mldiagnostics.goodput.events import EventCode
from mldiagnostics.goodput.payload import payload_of
from mldiagnostics.layout import record_segment_key
from mldiagnostics.pipeline.records import GOODPUT, Record, encode, encode_head

from mldiagnostics_operator.control_plane.limits import SEGMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.control_plane.packing import Entry

_HEAD: Final = "segment"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessName:
    """The process whose events a log has."""

    run_id: str
    incarnation: str
    attempt: int
    rank: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of events to write; `replaces` is the file that it contains."""

    key: str
    content: bytes
    count: int
    """Events of the process up to the end of this file."""
    replaces: str | None
    line_bytes: int
    """Bytes of the events in `content`."""


class EventLog:
    """The events of one process that are known or persisted, and the open segment.

    The number in a segment's name is the count of events up to its end, so that a listing gives the persisted count.
    """

    def __init__(self, persisted: int = 0) -> None:
        self.known = persisted
        self.persisted = persisted
        self._lines = bytearray()
        self._written: str | None = None
        """Key of the newest file of the open segment."""

    @property
    def open_bytes(self) -> int:
        """Bytes in memory."""
        return len(self._lines)

    def add(self, process: ProcessName, first: int, entries: Sequence[Entry]) -> int:
        """Add the entries that continue the log; return how many are new.

        Args:
            process: The process that recorded them.
            first: Index of the first entry. Entries behind a gap are ignored, known ones too.
            entries: Entries in the order in which they were recorded.
        """
        if first > self.known:
            return 0
        new = entries[self.known - first :]
        for entry in new:
            self._lines += _line(process, self.known, entry).encode()
            self.known += 1
        return len(new)

    def segment(self, process: ProcessName) -> Segment | None:
        """Return the file to write, None if all events are persisted."""
        if self.known == self.persisted:
            return None
        number = max(self.known, 1)
        key = record_segment_key(
            attempt=process.attempt, rank=process.rank, incarnation=process.incarnation, number=number
        )
        content = encode_head(_head(process, number)).encode() + self._lines
        return Segment(key, content, self.known, self._written, len(self._lines))

    def written(self, segment: Segment, *, foreign: bool = False) -> None:
        """Note that a segment is persisted; start another one if it is full.

        Args:
            segment: The segment.
            foreign: Another leader wrote its file, perhaps with earlier events too: it is never replaced.
        """
        self.persisted = max(self.persisted, segment.count)
        self._written = None if foreign else segment.key
        if segment.line_bytes >= SEGMENT_BYTES:
            del self._lines[: segment.line_bytes]
            self._written = None


def _line(process: ProcessName, index: int, entry: Entry) -> str:
    event_id = f"{process.incarnation}-{index}"
    if isinstance(entry, ClockStep):
        payload = {"job_name": process.run_id, CLOCK_STEP: entry.by, "event_id": event_id}
        return encode(Record("event", 0.0, GOODPUT, rank=process.rank, attempt=process.attempt, payload=payload))
    t = entry.t / 1e6
    if entry.code is EventCode.ALIVE:
        return encode(Record("heartbeat", t, "heartbeat", rank=entry.rank, attempt=process.attempt))
    payload = payload_of(entry, process.run_id)
    if entry.rank != process.rank:
        payload["rank"] = entry.rank
    if entry.run and entry.run != process.run_id:
        payload["run_id"] = entry.run
    payload["event_id"] = event_id
    return encode(Record("event", t, GOODPUT, rank=process.rank, attempt=process.attempt, payload=payload))


def _head(process: ProcessName, number: int) -> Record:
    labels = {"": "", "run": process.run_id, "name": process.run_id, "incarnation": process.incarnation}
    return Record("event", 0.0, _HEAD, (float(number),), None, labels, process.rank, process.attempt, "1", {})
