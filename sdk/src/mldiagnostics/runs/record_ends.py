"""The first and the last lines of files of records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from mldiagnostics.pipeline.records import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.pipeline.records import Record


_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = (256 * 1024, 1024 * 1024, 8 * 1024 * 1024)
"""The end of a file is read so far back, by turns, until it shows a sign of life."""

_SIGNS_OF_LIFE = ('"kind":"phase"', '"kind":"heartbeat"')
_MARKS_OF_RANKS = re.compile(rb'"kind":"(?:phase|heartbeat|session)"')
_EVENT, _STEP = b'"kind":"event"', b'"step_start_time":'


def head_of(opened: BinaryIO) -> bytes:
    """Return the first whole lines."""
    head = opened.read(_HEAD_BYTES)
    return head[: head.rfind(b"\n") + 1]


def tail_of(opened: BinaryIO) -> bytes:
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


def signs_of_life(lines: bytes) -> Iterator[Record]:
    """Yield phases, heartbeats, sessions, the last event and the last step.

    Metrics do not count: programs may give them any time.
    """
    end = 0
    for mark in _MARKS_OF_RANKS.finditer(lines):  # a tenth of the time of a look at each line
        if mark.start() < end:
            continue
        start, end = _line_at(lines, mark.start())
        if (record := decoded(lines[start:end])) is not None:
            yield record
    for last in (_EVENT, _STEP):
        offset = lines.rfind(last)
        if offset >= 0 and (record := decoded(lines[slice(*_line_at(lines, offset))])) is not None:
            yield record


def decoded(line: bytes) -> Record | None:
    """Return the record of a line; None if it is not a valid one."""
    try:
        return decode(line)
    except (ValueError, RecursionError):
        return None


def _line_at(lines: bytes, offset: int) -> tuple[int, int]:
    """Return the start and the end of the line at an offset."""
    end = lines.find(b"\n", offset)
    return lines.rfind(b"\n", 0, offset) + 1, len(lines) if end < 0 else end
