"""Goodput events of one process as lines of its journal; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.goodput.log.packed import packed_line
from mldiagnostics.layout import record_segment_key
from mldiagnostics.pipeline.records import SEGMENT_HEAD, Record, encode_head

from mldiagnostics_operator.control_plane.limits import SEGMENT_BYTES, SEGMENT_S

if TYPE_CHECKING:
    from mldiagnostics_operator.control_plane.memory.packed_events import PackedEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessName:
    """The process whose events a log has."""

    run_id: str
    incarnation: str
    attempt: int
    rank: int


@dataclass(frozen=True, slots=True)
class Segment:
    """New events to write into a file, after those of the file `extends`."""

    key: str
    head: bytes
    lines: bytes
    count: int
    """Events of the process up to the end of this file."""
    extends: str | None
    """The open file, which the new one replaces."""


@dataclass(frozen=True, slots=True)
class _OpenFile:
    key: str
    since: float


class EventLog:
    """The events of one process that are known or persisted, and new lines.

    The number in a segment's name is the count of events up to its end, so that a listing gives the persisted count.
    The newest file is open: the next lines are written together with its content, which is read again for that.
    """

    def __init__(self, persisted: int = 0) -> None:
        self.known = persisted
        self.persisted = persisted
        self._lines = bytearray()
        self._open: _OpenFile | None = None

    @property
    def open_bytes(self) -> int:
        """Bytes in memory."""
        return len(self._lines)

    def add(self, process: ProcessName, events: PackedEvents) -> int:
        """Add the events that continue the log; return how many are new: all or none.

        Args:
            process: The process that recorded them.
            events: The events, packed after `known` was read.
        """
        if events.first != self.known or not events.number:
            return 0
        self._lines += packed_line(
            events.items,
            first=events.first,
            run=process.run_id,
            incarnation=process.incarnation,
            rank=process.rank,
            attempt=process.attempt,
        )
        self.known += events.number
        return events.number

    def segment(self, process: ProcessName) -> Segment | None:
        """Return the file to write, None if all events are persisted."""
        if self.known == self.persisted:
            return None
        number = max(self.known, 1)
        key = record_segment_key(
            attempt=process.attempt, rank=process.rank, incarnation=process.incarnation, number=number
        )
        head = encode_head(_head(process, number)).encode()
        return Segment(key, head, bytes(self._lines), self.known, self._open.key if self._open else None)

    def written(self, segment: Segment, *, size: int, now: float, foreign: bool = False) -> None:
        """Note that a segment is persisted; its lines leave the memory.

        Args:
            segment: The segment.
            size: Bytes of its file.
            now: Unix time.
            foreign: Another leader wrote its file, perhaps with earlier events too: it is never replaced.
        """
        self.persisted = max(self.persisted, segment.count)
        del self._lines[: len(segment.lines)]
        since = self._open.since if self._open and segment.extends else now
        is_full = size >= SEGMENT_BYTES or now - since >= SEGMENT_S
        self._open = None if foreign or is_full else _OpenFile(segment.key, since)


def _head(process: ProcessName, number: int) -> Record:
    labels = {"": "", "run": process.run_id, "name": process.run_id, "incarnation": process.incarnation}
    return Record("event", 0.0, SEGMENT_HEAD, (float(number),), None, labels, process.rank, process.attempt, "1", {})
