"""Reading of the metrics of one run, a slice of work at a time."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.runs.metric_lines import MetricLines
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.runs.record_reader import RecordBlock, RecordReader

from mldiagnostics_view.curves.chunks import CurveChunks, SpillFile
from mldiagnostics_view.curves.heartbeats import beats_of
from mldiagnostics_view.limits import JOINED_BLOCKS, MAX_CURVE_BYTES, MAX_KEY_CHARS, MAX_SPILL_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.runs.metric_lines import CurveKey

__all__ = ["CurveReader", "ProcessCurve", "ReadProgress", "RunProcess"]


class ProcessCurve(NamedTuple):
    """A curve of one process of a run."""

    key: CurveKey
    rank: int
    attempt: int
    incarnation: str


class RunProcess(NamedTuple):
    """A process of a run."""

    rank: int
    attempt: int
    incarnation: str


class ReadProgress(NamedTuple):
    """How far a run was read."""

    read_bytes: int
    total_bytes: int
    revision: int
    """Differs if points came or went."""
    left_out: int
    """Points of curves for which there was no room."""
    bad_lines: int


class CurveReader:
    """The curves of a run, and the reader that extends them.

    All methods may be called from any thread.

    Args:
        directory: The directory of the run: a path or URL.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = Lock()
        self._records = RecordReader(directory)
        self._blocks: Iterator[RecordBlock] | None = None
        self._file = tempfile.TemporaryFile(prefix="mldiagnostics-view-")  # noqa: SIM115 - closed with the reader
        self._total_bytes = 0
        self._revision = 0
        self._clear()

    def close(self) -> None:
        """Remove the points."""
        with self._lock, closing(self._file):
            self._curves.clear()

    def read(self, slice_s: float) -> bool:
        """Read new lines for at most about `slice_s`; return whether all were read.

        Raises:
            StoreError: The files cannot be read. The next call continues.
            OSError: The temporary directory is full.
        """
        until = time.monotonic() + slice_s
        while self._add_block():
            if time.monotonic() >= until:
                return False
        return True

    def progress(self) -> ReadProgress:
        """Return how far the run was read."""
        with self._lock:
            read = self._records.bytes_read - self._bytes_before
            total = max(read, self._total_bytes)
            return ReadProgress(read, total, self._revision, self._left_out, self._lines.bad_lines)

    def curves(self, metrics: frozenset[str] | None) -> dict[ProcessCurve, CurveChunks]:
        """Return the curves of some metrics, all for None. Use them within `reading`."""
        return {of: curve for of, curve in self._curves.items() if metrics is None or of.key.metric in metrics}

    @property
    def reading(self) -> Lock:
        """The lock to hold while curves are used."""
        return self._lock

    def _add_block(self) -> bool:
        """Add the points of the next block; return False after the last one."""
        with self._lock:
            if self._blocks is None:
                self._total_bytes = sum(file.size for file in record_files(self._directory).list())
                self._blocks = self._records.blocks()
            blocks, self._blocks = self._blocks, None  # after a failure, the next call starts anew
            block = next(blocks, None)
            if self._restarts != self._records.restarts:
                self._clear()
            if block is None:
                self._add_pending()
                return False
            if self._pending and (block.segment != self._pending[0].segment or len(self._pending) >= JOINED_BLOCKS):
                self._add_pending()
            self._pending.append(block)
            self._blocks = blocks
            return True

    def _add_pending(self) -> None:
        """Add the points of the blocks that wait: a curve of many has only a few points in one block."""
        if self._pending:
            lines = b"".join(block.lines for block in self._pending)
            segment = self._pending[0].segment
            self._pending.clear()
            self._add(RecordBlock(segment, lines))

    def _clear(self) -> None:
        self._restarts = self._records.restarts
        self._bytes_before = self._records.bytes_read if self._restarts else 0
        self._lines = MetricLines(None)
        self._spill = SpillFile(self._file)
        self._curves: dict[ProcessCurve, CurveChunks] = {}
        self.beats: dict[RunProcess, CurveChunks] = {}
        """Steps over time by heartbeats. Use them within `reading`."""
        self._pending: list[RecordBlock] = []
        self._memory_bytes = 0
        self._left_out = 0
        self._revision += 1

    def _add(self, block: RecordBlock) -> None:
        segment = block.segment
        if self._spill.size <= MAX_SPILL_BYTES and (beats := beats_of(block.lines)):
            process = RunProcess(segment.rank, segment.attempt, segment.incarnation)
            self.beats.setdefault(process, CurveChunks(self._spill)).extend(beats)
        for key, added in self._lines.parse(block.lines).items():
            of = ProcessCurve(key, segment.rank, segment.attempt, segment.incarnation)
            curve = self._curves.get(of)
            before = 0 if curve is None else curve.memory_bytes
            is_full = self._memory_bytes > MAX_CURVE_BYTES or self._spill.size > MAX_SPILL_BYTES
            if is_full or len(key.metric) + sum(map(len, chain.from_iterable(key.labels))) > MAX_KEY_CHARS:
                self._left_out += len(added.points)
                continue
            if curve is None:
                curve = self._curves.setdefault(of, CurveChunks(self._spill))
            curve.extend(added.points)
            curve.unit = added.unit
            self._memory_bytes += curve.memory_bytes - before
            self._revision += 1
