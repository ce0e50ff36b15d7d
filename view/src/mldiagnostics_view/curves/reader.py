"""Reading of the metrics of one run, a slice of work at a time."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.runs.metric_lines import MetricLines
from mldiagnostics.runs.points import PointColumns
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.runs.record_reader import RecordReader
from mldiagnostics.runs.texts import RecordedTexts, texts_of

from mldiagnostics_view.curves.chunks import CurveChunks, SpillFile
from mldiagnostics_view.curves.heartbeats import beats_of, sessions_of
from mldiagnostics_view.curves.progress import ReadProgress
from mldiagnostics_view.curves.samples import sampled_blocks
from mldiagnostics_view.limits import JOINED_BLOCKS, MAX_CURVE_BYTES, MAX_KEY_CHARS, MAX_SPILL_BYTES, SAMPLED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mldiagnostics.layout import RecordSegment
    from mldiagnostics.runs.metric_lines import CurveKey, CurvePoints
    from mldiagnostics.runs.record_reader import RecordBlock

    from mldiagnostics_view.curves.heartbeats import SessionStart


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


class CurveReader:
    """The curves of a run, and the reader that extends them.

    All methods may be called from any thread.

    Args:
        directory: The directory of the run: a path or URL.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = Lock()
        """Guards the curves."""
        self._turn = Lock()
        """Held by the thread that reads, or closes."""
        self._records = RecordReader(directory)
        self._blocks: Iterator[RecordBlock] | None = None
        self._file = tempfile.TemporaryFile(buffering=0, prefix="mldiagnostics-view-")  # noqa: SIM115 - closed with the reader
        self._total_bytes = 0
        self._revision = 0
        self._clear()

    def close(self) -> None:
        """Remove the points."""
        with self._turn, self._lock, closing(self._file):
            self._curves.clear()

    def sample(self) -> bool:
        """Read a few lines of all new files, if they are large.

        Return whether there are any.

        Curves have their points until the files are read.

        Raises:
            StoreError: The files cannot be read.
        """
        with self._turn:
            files = record_files(self._directory)
            new = [file for file in files.list() if file.segment not in self._begun]
            if sum(file.size for file in new) < SAMPLED_BYTES:
                return False
            self._total_bytes = max(self._total_bytes, sum(file.size for file in new))
            lines = MetricLines(None)
            for block in sampled_blocks(files, new):
                beats, points = beats_of(block.lines), lines.parse(block.lines)
                with self._lock:
                    self._put_sample(block.segment, beats, points)
            return bool(self._sampled)

    def read(self, slice_s: float) -> bool:
        """Read new lines for at most about `slice_s`; return whether all were read.

        Raises:
            StoreError: The files cannot be read. The next call continues.
            OSError: The temporary directory is full.
        """
        until = time.monotonic() + slice_s
        with self._turn:
            while self._add_block():
                if time.monotonic() >= until:
                    return False
        return True

    def progress(self) -> ReadProgress:
        """Return how far the run was read."""
        with self._lock:
            read = self._records.bytes_read - self._bytes_before
            total = max(read, self._total_bytes)
            return ReadProgress(read, total, self._revision, self._left_out, self._lines.bad_lines, self._long_names)

    def curves(self, metrics: frozenset[str] | None) -> dict[ProcessCurve, CurveChunks]:
        """Return the curves of some metrics, all for None. Use them within `reading`."""
        return {
            of: curve
            for of, curve in self._curves.items()
            if (metrics is None or of.key.metric in metrics) and not curve.is_empty
        }

    @property
    def reading(self) -> Lock:
        """The lock to hold while curves are used."""
        return self._lock

    def _add_block(self) -> bool:
        """Add the points of the next block; return False after the last one."""
        if self._blocks is None:
            self._total_bytes = sum(file.size for file in record_files(self._directory).list())
            self._blocks = self._records.blocks()
        blocks, self._blocks = self._blocks, None  # after a failure, the next call starts anew
        block = next(blocks, None)
        if self._restarts != self._records.restarts:
            with self._lock:
                self._clear()
        if block is None:
            self._add_pending()
            with self._lock:
                self._drop_samples(list(self._sampled))
            return False
        if self._pending and (block.segment != self._pending[0].segment or len(self._pending) >= JOINED_BLOCKS):
            self._add_pending()
        self._pending.append(block)
        self._blocks = blocks
        return True

    def _add_pending(self) -> None:
        """Add the points of the blocks that wait.

        A curve of many has only a few points in one block.
        """
        if self._pending:
            lines = b"".join(block.lines for block in self._pending)
            segment = self._pending[0].segment
            self._pending.clear()
            beats, points = beats_of(lines), self._lines.parse(lines)  # without the lock: this takes most of the time
            sessions, texts = list(sessions_of(lines)), texts_of(lines)
            with self._lock:
                self.texts.add(segment.incarnation, texts)
                self._add(segment, beats, points)
                for session in sessions:
                    self.sessions.setdefault(session.name, (_process(segment), session))

    def _clear(self) -> None:
        self._restarts = self._records.restarts
        self._bytes_before = self._records.bytes_read if self._restarts else 0
        self._lines = MetricLines(None)
        self._spill = SpillFile(self._file)
        self._curves: dict[ProcessCurve, CurveChunks] = {}
        self.beats: dict[RunProcess, CurveChunks] = {}
        """Steps over time by heartbeats and starts of steps. Use them within `reading`."""
        self.sessions: dict[str, tuple[RunProcess, SessionStart]] = {}
        """First records of profile sessions. Use them within `reading`."""
        self.texts = RecordedTexts()
        """Texts that the program has recorded. Use them within `reading`."""
        self._pending: list[RecordBlock] = []
        self._begun: set[RecordSegment] = set()
        self._sampled: dict[RecordSegment, list[CurveChunks]] = {}
        """Curves with a sample of a file, by the file."""
        self._memory_bytes = 0
        self._left_out = self._long_names = 0
        self._revision += 1

    def _put_sample(self, segment: RecordSegment, beats: PointColumns, points: Mapping[CurveKey, CurvePoints]) -> None:
        curves = self._sampled.setdefault(segment, [])
        if beats:
            curves.append(self.beats.setdefault(_process(segment), CurveChunks(self._spill)))
            curves[-1].put_sample(segment, beats)
        for key, added in points.items():
            if (curve := self._curve(ProcessCurve(key, *_process(segment)))) is not None:
                curve.put_sample(segment, PointColumns(added.points.t, added.points.step, added.points.value))
                curve.unit = added.unit
                curves.append(curve)
        self._revision += 1

    def _drop_samples(self, segments: Iterable[RecordSegment]) -> None:
        for segment in segments:
            for curve in self._sampled.pop(segment, ()):
                curve.drop_sample(segment)
            self._revision += 1

    def _add(self, segment: RecordSegment, beats: PointColumns, points: Mapping[CurveKey, CurvePoints]) -> None:
        if segment not in self._begun:
            self._drop_samples(self._begun & self._sampled.keys())
            self._begun.add(segment)
        if beats and self._spill.size <= MAX_SPILL_BYTES:
            steps = self.beats.setdefault(_process(segment), CurveChunks(self._spill))
            if segment in self._sampled:
                steps.drop_sample(segment, beats.t[-1])
            steps.extend(beats)
        for key, added in points.items():
            if _is_long(key):
                self._long_names += len(added.points)
                continue
            curve = self._curve(ProcessCurve(key, *_process(segment)))
            if curve is None or self._memory_bytes > MAX_CURVE_BYTES or self._spill.size > MAX_SPILL_BYTES:
                self._left_out += len(added.points)
                continue
            before = curve.memory_bytes
            if segment in self._sampled:
                curve.drop_sample(segment, added.points.t[len(added.points) - 1])
            curve.extend(added.points)
            curve.unit = added.unit
            self._memory_bytes += curve.memory_bytes - before
            self._revision += 1

    def _curve(self, of: ProcessCurve) -> CurveChunks | None:
        """Return a curve; a new one if it is not known.

        None if there is no room for one, or its name is too long.
        """
        curve = self._curves.get(of)
        if curve is None and not _is_long(of.key) and self._memory_bytes <= MAX_CURVE_BYTES:
            curve = self._curves.setdefault(of, CurveChunks(self._spill))
            self._memory_bytes += curve.memory_bytes
        return curve


def _is_long(key: CurveKey) -> bool:
    return len(key.metric) + sum(map(len, chain.from_iterable(key.labels))) > MAX_KEY_CHARS


def _process(segment: RecordSegment) -> RunProcess:
    return RunProcess(segment.rank, segment.attempt, segment.incarnation)
