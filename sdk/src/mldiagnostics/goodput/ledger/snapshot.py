"""The snapshot format of a ledger: a header line of JSON, then the columns.

The columns are as in memory, little-endian. The header has their lengths and their CRC-32; a snapshot that does not
match is rejected.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.events.event import CheckpointEvent, SliceCounts
from mldiagnostics.goodput.ledger.run_timeline import RunTimeline
from mldiagnostics.goodput.ledger.state import FoldState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from mldiagnostics.goodput.events.event import Arg
    from mldiagnostics.goodput.ledger.columns import EventColumns, RankedStep
    from mldiagnostics.goodput.ledger.fold import Fold

_FORMAT = "mldiagnostics goodput ledger"
_VERSION = 2
_PIECE = 1 << 24
_LINE = 1 << 28


def dump(log: EventColumns, runs: Sequence[RunTimeline], file: BinaryIO, *, splits: bool) -> None:
    """Write the events of a ledger and their fold."""
    columns = [_bytes(column) for column in _columns(log, runs)]
    check = 0
    for column in columns:
        check = zlib.crc32(column, check)
    head = {
        "format": _FORMAT,
        "version": _VERSION,
        "splits": splits,
        "authority": log.authority,
        "ignored": dict(log.ignored),
        "table": [_packed(each) for each in log.table],
        "lives": [_packed_fold(run.fold) for run in runs],
        "lengths": [len(column) for column in columns],
        "crc32": check,
    }
    file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n")
    for column in columns:
        file.write(column)


def load(log: EventColumns, runs: list[RunTimeline], file: BinaryIO) -> bool:
    """Fill empty columns and runs from a snapshot, and return its `splits`.

    Raises:
        ValueError: the file is not a snapshot of a ledger, or it is damaged.
    """
    head = read_head(file, _FORMAT, _VERSION)
    try:
        splits = bool(head["splits"])
        log.authority = None if head["authority"] is None else int(head["authority"])
        log.ignored.update({str(reason): int(number) for reason, number in head["ignored"].items()})
        log.fill_table([_unpacked(each) for each in head["table"]])
        runs[:] = [_unpacked_run(log, run) for run in head["lives"]]
        lengths, check = [int(length) for length in head["lengths"]], int(head["crc32"])
        columns = _columns(log, runs)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a {_FORMAT} of version {_VERSION}: {error!r}") from error
    if not runs or len(columns) != len(lengths):
        raise ValueError(f"not a {_FORMAT} of version {_VERSION}: {len(runs)} runs in {len(lengths)} columns")
    actual = 0
    for column, length in zip(columns, lengths, strict=True):
        content = _read(file, length)
        actual = zlib.crc32(content, actual)
        if isinstance(column, bytearray):
            column.extend(content)
        else:
            del column[:]
            column.frombytes(content)
            if sys.byteorder == "big":
                column.byteswap()
    if actual != check:
        raise ValueError(f"{_FORMAT}: columns are damaged (CRC-32 {actual:08x} instead of {check:08x})")
    return splits


def read_head(file: BinaryIO, form: str, version: int, *, max_bytes: int = _LINE) -> dict[str, Any]:
    """Read the header line of a snapshot.

    Raises:
        ValueError: the file is of another format or version.
    """
    line = file.readline(max_bytes)
    try:
        head = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not a {form}: it begins with {line[:40]!r}") from error
    if not isinstance(head, dict) or head.get("format") != form:
        raise ValueError(f"not a {form}: it begins with {line[:40]!r}")
    if head.get("version") != version:
        raise ValueError(f"{form}: version {head.get('version')!r} instead of {version}; read the log again")
    return head


def _read(file: BinaryIO, length: int) -> bytearray:
    """Read in pieces, so that a wrong length costs no memory."""
    content = bytearray()
    while len(content) < length and (piece := file.read(min(_PIECE, length - len(content)))):
        content += piece
    if len(content) != length:
        raise ValueError(f"{_FORMAT}: cut off, {len(content)} of {length} bytes in a column")
    return content


def _columns(log: EventColumns, runs: Sequence[RunTimeline]) -> list[array[int] | bytearray]:
    """Return all columns in the order of the file."""
    return [log.t, log.code, log.arg, *(column for run in runs for column in run.fold.folded.columns())]


def _bytes(column: array[int] | bytearray) -> memoryview:
    if sys.byteorder == "big" and isinstance(column, array):
        column = column[:]
        column.byteswap()
    return memoryview(column).cast("B")


def _packed(argument: Arg | RankedStep) -> object:
    if isinstance(argument, SliceCounts):
        return {"slices": argument}
    return {"saved": argument} if isinstance(argument, CheckpointEvent) else argument


def _unpacked(packed: Any) -> Arg | RankedStep:
    if isinstance(packed, dict):
        if "slices" in packed:
            return SliceCounts(*map(int, packed["slices"]))
        until, step, tier = packed["saved"]
        return CheckpointEvent(int(until), int(step), str(tier))
    if isinstance(packed, str):
        return packed
    step, rank = packed
    return int(step), int(rank)


def _packed_fold(fold: Fold) -> dict[str, object]:
    states = [*fold.saved_states, (fold.state, fold.folded.lengths())]
    return {
        "since": fold.since,
        "end": fold.end,
        "states": [[state.packed(), lengths] for state, lengths in states],
    }


def _unpacked_run(log: EventColumns, packed: dict[str, Any]) -> RunTimeline:
    run = RunTimeline(log, int(packed["since"]))
    fold = run.fold
    fold.end = None if packed["end"] is None else int(packed["end"])
    for state, (steps, attempts, spans, loads, blocking, marks) in packed["states"]:
        fold.saved_states.append((FoldState.unpacked(state), (steps, attempts, spans, loads, blocking, marks)))
    fold.state = fold.saved_states.pop()[0]
    fold.folded.dirty = -1
    return run
