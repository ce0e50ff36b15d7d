"""Ranks, events and records of one run, read from its files of records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.exit_status import outcome_left
from mldiagnostics.pipeline.records import KINDS, SEGMENT_HEAD, Kind, is_goodput
from mldiagnostics.runs.rank_row import RankRow, rank_rows
from mldiagnostics.runs.record_ends import decoded, head_of, signs_of_life, tail_of
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.runs.record_reader import RecordReader
from mldiagnostics.runs.row import directory_of
from mldiagnostics.text.strict_json import finite
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.runs.record_files import RecordFile
    from mldiagnostics.runs.row import RunRow


_MAX_PROCESSES = 16
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


def process_rows(directory: str, *, now: float, interval_s: float | None = None) -> list[RankRow]:
    """Return the processes of a run by their records and its heartbeats' interval.

    `ranks` has all facts. Raises as `ranks` does.
    """
    files = record_files(directory)
    first, last = _ends(files.list())
    signs: list[tuple[str, Record]] = []
    for file, opened in files.open(sorted({*first, *last})):
        with opened:
            lines = head_of(opened) if file in first else b""
            if file in last and (file not in first or len(lines) < file.size):
                lines += tail_of(opened)
        signs += ((file.segment.incarnation, record) for record in signs_of_life(lines))
    return [_with_status_left(row, directory) for row in rank_rows(signs, now=now, interval_s=interval_s)]


def _with_status_left(row: RankRow, directory: str) -> RankRow:
    outcome = outcome_left(directory, row.incarnation, row.reason)
    if outcome is None:
        return row
    return replace(row, phase=outcome.phase, reason=outcome.reason, message=outcome.message)


def last_records(directory: str, incarnations: Collection[str]) -> dict[str, float]:
    """Return when some processes recorded last, in Unix seconds, by incarnation.

    Raises `StoreError`.
    """
    files = record_files(directory)
    newest = {file.segment.incarnation: file for file in files.list() if file.segment.incarnation in incarnations}
    seen = {}
    for file, opened in files.open(sorted(newest.values())):
        with opened:
            moments = [record.t for record in signs_of_life(tail_of(opened))]
        if moments:
            seen[file.segment.incarnation] = max(moments)
    return seen


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
        raise ConfigurationError(f"kinds={unknown}: not kinds of events; use one or more of {known}")
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
        if not is_goodput(record) and not (record.kind == "event" and record.name == SEGMENT_HEAD)
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
                record = decoded(line)
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
