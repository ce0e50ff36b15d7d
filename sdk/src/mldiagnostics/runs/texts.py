"""Texts that a program has recorded, out of its files of records."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.runs.record_ends import decoded
from mldiagnostics.runs.record_reader import RecordReader
from mldiagnostics.runs.row import directory_of
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.runs.row import RunRow


MAX_TEXTS = 200
"""Texts of a run that are kept, the newest: at most 0.8 MiB."""

_MARK = b'"payload":{"message":"'
"""Marks a text; within a string its quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text as the program recorded it, without secrets."""

    t: float
    """Unix seconds."""
    name: str
    text: str
    step: int | None
    rank: int

    def to_json(self) -> dict[str, Any]:
        """Return the text as JSON; its time is RFC 3339."""
        return {"time": timestamp(self.t), "name": self.name, "text": self.text, "step": self.step, "rank": self.rank}


class RecordedTexts:
    """The newest texts of a run, and the number of all."""

    def __init__(self) -> None:
        self.total = 0
        self._processes: dict[object, deque[TextRow]] = {}

    def add(self, process: object, rows: list[TextRow]) -> None:
        """Add texts of a process, which are later than those before."""
        if rows:
            self.total += len(rows)
            self._processes.setdefault(process, deque(maxlen=MAX_TEXTS)).extend(rows)

    def newest(self) -> list[TextRow]:
        """Return the newest texts, by time."""
        every = (row for rows in self._processes.values() for row in rows)
        return sorted(every, key=lambda row: (row.t, row.rank))[-MAX_TEXTS:]

    def to_json(self) -> dict[str, Any]:
        """Return the newest texts and the number of all as JSON."""
        return {"total": self.total, "newest": [row.to_json() for row in self.newest()]}


def texts_of(lines: bytes) -> list[TextRow]:
    """Return the texts in whole lines."""
    return [*_texts_of(lines)]


def texts(run: RunRow | str) -> RecordedTexts:
    """Return the texts of a run. All files of records are read.

    Args:
        run: A row, or the directory of a run: a path or URL.

    Raises:
        StoreError: The files cannot be read.
    """
    recorded = RecordedTexts()
    for block in RecordReader(directory_of(run)).blocks():
        recorded.add(block.segment.incarnation, texts_of(block.lines))
    return recorded


def _texts_of(lines: bytes) -> Iterator[TextRow]:
    at = lines.find(_MARK)
    while at >= 0:
        start, end = lines.rfind(b"\n", 0, at) + 1, lines.find(b"\n", at)
        end = len(lines) if end < 0 else end
        record = decoded(lines[start:end])
        if (
            record is not None
            and record.kind == "event"
            and isinstance(text := (record.payload or {}).get("message"), str)
        ):
            yield TextRow(record.t, record.name, text, record.step, record.rank)
        at = lines.find(_MARK, end)
