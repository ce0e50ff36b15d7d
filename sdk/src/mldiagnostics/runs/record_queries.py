"""Ranks, events and records of one run, read from its files of records."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.records import KINDS, Kind, decode, is_goodput
from mldiagnostics.runs.rank_row import RankRow, rank_rows
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.runs.record_reader import RecordReader
from mldiagnostics.runs.row import directory_of
from mldiagnostics.runs.row_values import timestamp
from mldiagnostics.text.strict_json import finite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.runs.record_files import RecordFile
    from mldiagnostics.runs.row import RunRow

__all__ = ["EventRow", "events", "ranks", "read_records"]

_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = (256 * 1024, 1024 * 1024, 8 * 1024 * 1024)
"""The end of a file is read so far back, by turns, until it shows a sign of life."""

_MAX_PROCESSES = 16
_SIGNS_OF_LIFE = ('"kind":"phase"', '"kind":"heartbeat"')
_MARKS_OF_RANKS = re.compile(rb'"kind":"(?:phase|heartbeat|session)"')
_SEGMENT_HEAD = "segment"
_EVENT_KINDS: frozenset[Kind] = frozenset({"event", "phase", "session", "drop"})


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event in the life of a run."""

    t: float
    """Unix seconds."""
    kind: Kind
    name: str
    """Name of the event, the phase, the profile session, or the reason of a drop."""
    rank: int
    attempt: int
    incarnation: str
    step: int | None
    labels: Mapping[str, str]
    payload: Mapping[str, object]

    def to_json(self) -> dict[str, Any]:
        """Return the event as JSON; its time is RFC 3339."""
        return {
            "time": timestamp(self.t),
            "kind": self.kind,
            "name": self.name,
            "rank": self.rank,
            "attempt": self.attempt,
            "incarnation": self.incarnation,
            "step": self.step,
            "labels": dict(self.labels),
            "payload": finite(dict(self.payload)),
        }


def ranks(run: RunRow | str, *, now: float | None = None) -> list[RankRow]:
    """Return the processes of a run, for each rank the last one.

    The cost does not grow with the length of the run: of each process the first 64 KiB are read and the end of its last
    file, 256 KiB, or up to 8 MiB until that shows a sign of life. In a store these two objects are read whole.

    Args:
        run: A row, or the directory of a run: a path or URL.
        now: As of when, in Unix seconds; by default now.

    Returns:
        The rows, by rank; none if there are no records.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read.
        StoreError: The files cannot be read.

    Example:
        [rank for rank in ranks(run) if rank.phase == "Failed"]
    """
    files = record_files(directory_of(run))
    first, last = _ends(files.list())
    signs: list[tuple[str, Record]] = []
    for file, opened in files.open(sorted({*first, *last})):
        with opened:
            lines = _head(opened) if file in first else b""
            if file in last and (file not in first or len(lines) < file.size):
                lines += _tail(opened)
        signs += ((file.segment.incarnation, record) for record in _records_of_rank(lines))
    return rank_rows(signs, now=time.time() if now is None else now)


def read_records(storage: str, run_id: str, *, kinds: Collection[Kind] | None = None) -> Iterator[Record]:
    """Yield the records of a run, in the order of each process, process by process.

    A last line that is still being written is left out, and broken lines are. The whole of all files is read; memory
    stays at a few MiB.

    Args:
        storage: Root of the runs: a path or URL.
        run_id: The whole id of the run.
        kinds: Only records of these kinds; None for all.

    Raises:
        StoreError: The files cannot be read.
    """
    for _, record in _records(f"{storage.rstrip('/')}/{run_id}", kinds):
        yield record


def events(
    run: RunRow | str, *, kinds: Collection[Kind] = _EVENT_KINDS, rank: int | None = None, attempt: int | None = None
) -> list[EventRow]:
    """Return the events of a run, for a timeline.

    These are events of the program, phases, profile sessions and drops. All files of records are read. Events from
    which goodput is computed are left out: see `goodput`.

    Args:
        run: A row, or the directory of a run: a path or URL.
        kinds: Kinds of records; `config` and `heartbeat` are possible too.
        rank: Only this rank; None for all.
        attempt: Only this attempt; None for all.

    Returns:
        The events, by time.

    Raises:
        ConfigurationError: `kinds` has an unknown kind, or `metric`.
        StoreError: The files cannot be read.
    """
    if unknown := sorted({*kinds} - (KINDS - {"metric"})):
        known = ", ".join(kind for kind in get_args(Kind) if kind != "metric")
        raise ConfigurationError(f"kinds={unknown}: not kinds of events; give some of {known}")
    rows = [
        EventRow(
            t=record.t,
            kind=record.kind,
            name=record.name,
            rank=record.rank,
            attempt=record.attempt,
            incarnation=incarnation,
            step=record.step,
            labels=record.labels,
            payload=record.payload or {},
        )
        for incarnation, record in _records(directory_of(run), kinds, rank=rank, attempt=attempt)
        if not is_goodput(record) and not (record.kind == "event" and record.name == _SEGMENT_HEAD)
    ]
    return sorted(rows, key=lambda row: (row.t, row.rank))


def _records(
    directory: str, kinds: Collection[Kind] | None, *, rank: int | None = None, attempt: int | None = None
) -> Iterator[tuple[str, Record]]:
    """Yield records with the incarnations of their processes."""
    others = tuple(f'{{"v":1,"kind":"{kind}"'.encode() for kind in KINDS - set(KINDS if kinds is None else kinds))
    for block in RecordReader(directory, rank=rank, attempt=attempt).blocks():
        for line in block.lines.split(b"\n"):
            if line and not line.startswith(others):
                record = _decoded(line)
                if record is not None and (kinds is None or record.kind in kinds):
                    yield block.segment.incarnation, record


def _ends(files: Iterable[RecordFile]) -> tuple[set[RecordFile], set[RecordFile]]:
    """Return the first and the last files of the last processes of each rank."""
    attempts: dict[int, int] = {}
    processes: dict[int, dict[str, list[RecordFile]]] = {}
    for file in sorted(files):
        attempt, rank, incarnation, _ = file.segment
        if attempt > attempts.get(rank, -1):
            attempts[rank] = attempt
            processes[rank] = {}
        processes[rank].setdefault(incarnation, []).append(file)
    first, last = set(), set()
    for incarnations in processes.values():
        recent = sorted(incarnations.values(), key=lambda each: each[-1].modified)[-_MAX_PROCESSES:]
        first |= {each[0] for each in recent}
        last |= {each[-1] for each in recent}
    return first, last


def _head(opened: BinaryIO) -> bytes:
    head = opened.read(_HEAD_BYTES)
    return head[: head.rfind(b"\n") + 1]


def _tail(opened: BinaryIO) -> bytes:
    """Return the last whole lines, back to a sign of life if there is one near."""
    size = opened.seek(0, 2)
    lines = b""
    for length in _TAIL_BYTES:
        opened.seek(max(0, size - length))
        tail = opened.read(length)
        whole = tail.find(b"\n") + 1 if length < size else 0
        lines = tail[whole : tail.rfind(b"\n") + 1]
        if length >= size or any(mark.encode() in lines for mark in _SIGNS_OF_LIFE):
            break
    return lines


def _records_of_rank(lines: bytes) -> Iterator[Record]:
    end = 0
    for mark in _MARKS_OF_RANKS.finditer(lines):  # a tenth of the time of a look at each line
        if mark.start() < end:
            continue
        start, end = lines.rfind(b"\n", 0, mark.start()) + 1, lines.find(b"\n", mark.end())
        end = len(lines) if end < 0 else end
        if (record := _decoded(lines[start:end])) is not None:
            yield record


def _decoded(line: bytes) -> Record | None:
    try:
        return decode(line)
    except (ValueError, RecursionError):
        return None
