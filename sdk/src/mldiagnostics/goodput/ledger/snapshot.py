"""A ledger in a file and back: a line of JSON that says what follows, then the columns as they are in memory.

The columns are little-endian. The line has their lengths and their CRC-32; what does not match is refused.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.events import CheckpointEvent, SliceCounts
from mldiagnostics.goodput.ledger.run_timeline import RunTimeline
from mldiagnostics.goodput.ledger.state import FoldState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from mldiagnostics.goodput.events import Arg
    from mldiagnostics.goodput.ledger import Ledger
    from mldiagnostics.goodput.ledger.columns import EventColumns, Whose
    from mldiagnostics.goodput.ledger.fold import Fold

_FORMAT = "mldiagnostics goodput ledger"
_VERSION = 2
_PIECE = 1 << 24
_LINE = 1 << 28


def dump(ledger: Ledger, file: BinaryIO) -> None:
    """Write a ledger with all that was made of its events."""
    log, lives = ledger.log, ledger.known_lives
    columns = [_bytes(column) for column in _columns(log, lives)]
    check = 0
    for column in columns:
        check = zlib.crc32(column, check)
    head = {
        "format": _FORMAT,
        "version": _VERSION,
        "splits": ledger.splits,
        "authority": log.authority,
        "ignored": dict(log.ignored),
        "table": [_packed(each) for each in log.table],
        "lives": [_packed_fold(life.fold) for life in lives],
        "lengths": [len(column) for column in columns],
        "crc32": check,
    }
    file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n")
    for column in columns:
        file.write(column)


def load(ledger: Ledger, file: BinaryIO) -> None:
    """Fill an empty ledger with what `dump` has written. Raises `ValueError` saying what is wrong if it is none."""
    head = read_head(file, _FORMAT, _VERSION)
    try:
        log, lives = ledger.log, ledger.known_lives
        ledger.splits = bool(head["splits"])
        log.authority = None if head["authority"] is None else int(head["authority"])
        log.ignored.update({str(reason): int(number) for reason, number in head["ignored"].items()})
        log.fill_table([_unpacked(each) for each in head["table"]])
        lives[:] = [_unpacked_life(log, life) for life in head["lives"]]
        lengths, check = [int(length) for length in head["lengths"]], int(head["crc32"])
        columns = _columns(log, lives)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no {_FORMAT} of version {_VERSION}: {error!r}") from error
    if not lives or len(columns) != len(lengths):
        raise ValueError(f"no {_FORMAT} of version {_VERSION}: {len(lives)} runs in {len(lengths)} columns")
    found = 0
    for column, length in zip(columns, lengths, strict=True):
        content = _read(file, length)
        found = zlib.crc32(content, found)
        if isinstance(column, bytearray):
            column.extend(content)
        else:
            del column[:]
            column.frombytes(content)
            if sys.byteorder == "big":
                column.byteswap()
    if found != check:
        raise ValueError(f"{_FORMAT}: its columns are damaged (CRC-32 {found:08x} instead of {check:08x})")


def read_head(file: BinaryIO, form: str, version: int, *, max_bytes: int = _LINE) -> dict[str, Any]:
    """Read the line of JSON that a kept thing begins with. Raises `ValueError` if it is of another form or version."""
    line = file.readline(max_bytes)
    try:
        head = json.loads(line)
    except ValueError as error:
        raise ValueError(f"no {form}: it begins with {line[:40]!r}") from error
    if not isinstance(head, dict) or head.get("format") != form:
        raise ValueError(f"no {form}: it begins with {line[:40]!r}")
    if head.get("version") != version:
        raise ValueError(f"{form} of version {head.get('version')!r}, this reads {version}: read the log anew")
    return head


def _read(file: BinaryIO, length: int) -> bytearray:
    """Read piece by piece, so that a wrong length costs no memory."""
    content = bytearray()
    while len(content) < length and (piece := file.read(min(_PIECE, length - len(content)))):
        content += piece
    if len(content) != length:
        raise ValueError(f"{_FORMAT}: cut off, {len(content)} of {length} bytes of a column are there")
    return content


def _columns(log: EventColumns, lives: Sequence[RunTimeline]) -> list[array[int] | bytearray]:
    """Return all columns in the order in which they are written."""
    return [log.t, log.code, log.arg, *(column for life in lives for column in life.fold.told.columns())]


def _bytes(column: array[int] | bytearray) -> memoryview:
    if sys.byteorder == "big" and isinstance(column, array):
        column = column[:]
        column.byteswap()
    return memoryview(column).cast("B")


def _packed(kept: Arg | Whose) -> object:
    if isinstance(kept, SliceCounts):
        return {"slices": kept}
    return {"saved": kept} if isinstance(kept, CheckpointEvent) else kept


def _unpacked(packed: Any) -> Arg | Whose:
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
    states = [*fold.kept, (fold.state, fold.told.lengths())]
    return {
        "since": fold.since,
        "end": fold.end,
        "states": [[state.packed(), lengths] for state, lengths in states],
    }


def _unpacked_life(log: EventColumns, packed: dict[str, Any]) -> RunTimeline:
    life = RunTimeline(log, int(packed["since"]))
    fold = life.fold
    fold.end = None if packed["end"] is None else int(packed["end"])
    for state, (steps, attempts, spans, loads, blocking, marks) in packed["states"]:
        fold.kept.append((FoldState.unpacked(state), (steps, attempts, spans, loads, blocking, marks)))
    fold.state = fold.kept.pop()[0]
    fold.told.dirty = -1
    return life
