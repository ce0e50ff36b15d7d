"""Points of one curve in a temporary file, with summaries in memory."""

from __future__ import annotations

import errno
import os
from array import array
from math import inf, isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from mldiagnostics.runs.points import NO_STEP, PointColumns

from mldiagnostics_view.curves.windows import Nonfinite
from mldiagnostics_view.limits import CHUNK_POINTS, MAX_X

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO

    from mldiagnostics.layout import RecordSegment
    from mldiagnostics.runs.points import PointSource

    from mldiagnostics_view.curves.windows import Axis, Buckets


_BYTES: Final = 8
_FIELDS: Final = 15
_COUNT, _VALUE, _LOW, _HIGH, _T, _T_MIN, _T_MAX, _STEPS, _STEP, _STEP_MIN, _STEP_MAX, _OFFSET = range(12)
_NAN, _PLUS, _MINUS = range(12, _FIELDS)
"""Values that are not finite: they count in the bounds of x and in the number of steps, not in the sums."""

_BOUNDS: Final[dict[Axis, tuple[int, int]]] = {"time": (_T_MIN, _T_MAX), "step": (_STEP_MIN, _STEP_MAX)}


class Extent(NamedTuple):
    """The lowest and the highest x of a curve."""

    start: float
    end: float


class SpillFile:
    """A file without a name that takes the points of all curves of a run.

    Args:
        file: An unbuffered file.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.size = 0

    def append(self, points: PointColumns) -> int:
        """Write a chunk; return its offset. Raises `OSError`."""
        offset = self.size
        chunk = b"".join([points.t.tobytes(), points.step.tobytes(), points.value.tobytes()])
        if os.pwrite(self._file.fileno(), chunk, offset) < len(chunk):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += len(chunk)
        return offset

    def read(self, offset: int) -> PointColumns:
        """Return the chunk at an offset."""
        points, size = PointColumns(), CHUNK_POINTS * _BYTES
        chunk = os.pread(self._file.fileno(), 3 * size, offset)
        points.t.frombytes(chunk[:size])
        points.step.frombytes(chunk[size : 2 * size])
        points.value.frombytes(chunk[2 * size :])
        return points


class CurveChunks:
    """Points of one curve of one process, in the order of their recording.

    Args:
        spill: File that takes each full chunk.
    """

    __slots__ = ("_extents", "_open", "_sampled", "_spill", "_summaries", "count", "last", "unit")

    def __init__(self, spill: SpillFile) -> None:
        self._spill = spill
        self._summaries = array("d")
        self._open = PointColumns()
        self._extents = {axis: Extent(inf, -inf) for axis in _BOUNDS}
        """Of the full chunks."""
        self._sampled: dict[RecordSegment, tuple[PointColumns, list[float]]] = {}
        """Some points of files that are not read yet, and their summary."""
        self.count = 0
        """Points that were read; those of samples are not counted."""
        self.last: tuple[float, float] | None = None
        """Time and value of the last point."""
        self.unit = ""

    @property
    def memory_bytes(self) -> int:
        """About the memory of the curve."""
        return 1024 + _BYTES * len(self._summaries) + 3 * _BYTES * CHUNK_POINTS

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.count and not self._sampled

    def put_sample(self, segment: RecordSegment, points: PointColumns) -> None:
        """Show some points of a file before it is read.

        Later, all points of that file are added.
        """
        self._sampled[segment] = points, _summary(points, 0)
        self.last = points.t[-1], points.value[-1]

    def drop_sample(self, segment: RecordSegment, read_t: float = inf) -> None:
        """Forget the sample of a file up to a time: that of the last point that was read."""
        points, _ = self._sampled.pop(segment, (None, None))
        if points is not None and (left := [at for at, t in enumerate(points.t) if t > read_t]):
            rest = points.select(left)
            self._sampled[segment] = rest, _summary(rest, 0)

    def extend(self, added: PointSource) -> None:
        """Add points."""
        size = len(added)
        if not size:
            return
        self.count += size
        if not self._sampled:
            self.last = added.t[size - 1], added.value[size - 1]
        at = 0
        while at < size:
            end = min(size, at + CHUNK_POINTS - len(self._open))
            self._open.extend(added, at, end)
            at = end
            if len(self._open) == CHUNK_POINTS:
                summary = _summary(self._open, self._spill.append(self._open))
                self._summaries.extend(summary)
                self._extents = {axis: self._wider(axis, [summary]) for axis in _BOUNDS}
                self._open = PointColumns()

    def extent(self, axis: Axis) -> Extent | None:
        """Return the range of x with points, within `MAX_X`; None without any."""
        sampled = [summary for _, summary in self._sampled.values()]
        start, end = self._wider(axis, [_summary(self._open, 0), *sampled])
        extent = Extent(max(start, -MAX_X), min(end, MAX_X))
        return extent if extent.start <= extent.end else None

    def fill(self, buckets: Buckets) -> None:
        """Add the points within the window.

        A chunk that is narrower than a bucket is added as a whole, at its mean x; a wider one is read. So at most as
        many chunks are read as there are buckets, and one more.
        """
        window = buckets.window
        low, high = _BOUNDS[window.axis]
        x = _T if window.axis == "time" else _STEP
        summaries = self._summaries
        for at in range(0, len(summaries), _FIELDS):
            start, end, count = summaries[at + low], summaries[at + high], summaries[at + _COUNT]
            odd = Nonfinite(*map(int, summaries[at + _NAN : at + _FIELDS]))
            if end < window.start or start > window.end:
                continue
            is_inside = window.start <= start and end <= window.end
            if is_inside and end - start < window.width and (x == _T or summaries[at + _STEPS] == count + odd.total):
                if odd.total:
                    buckets.add_nonfinite(start, odd)
                if count:
                    buckets.add_summary(
                        count=count,
                        x=summaries[at + x],
                        value=summaries[at + _VALUE],
                        low=summaries[at + _LOW],
                        high=summaries[at + _HIGH],
                    )
            else:
                _add(self._spill.read(int(summaries[at + _OFFSET])), buckets)
        _add(self._open, buckets)
        for points, _ in self._sampled.values():
            _add(points, buckets)

    def points(self, axis: Axis, start: float, end: float) -> Iterator[tuple[float, float, float]]:
        """Yield time, step and value of the recorded points of a window.

        `NO_STEP` stands for no step.
        """
        low, high = _BOUNDS[axis]
        for at in range(0, len(self._summaries), _FIELDS):
            if self._summaries[at + low] <= end and self._summaries[at + high] >= start:
                yield from _within(self._spill.read(int(self._summaries[at + _OFFSET])), axis, start, end)
        for points in (self._open, *(points for points, _ in self._sampled.values())):
            yield from _within(points, axis, start, end)

    def last_point(self, axis: Axis, start: float, end: float) -> tuple[float, float] | None:
        """Return x and value of the point with the highest x in a window.

        Of several, it is the one recorded last.
        """
        low, high = _BOUNDS[axis]
        last: tuple[float, float] | None = None
        parts = [(at, self._summaries[at + high]) for at in range(0, len(self._summaries), _FIELDS)]
        tail = [self._open, *(points for points, _ in self._sampled.values())]
        for points in reversed(tail):
            last = _last(points, axis, start, end, last)
        for at, highest in reversed(parts):
            if self._summaries[at + low] <= end and highest >= start and (last is None or highest > last[0]):
                last = _last(self._spill.read(int(self._summaries[at + _OFFSET])), axis, start, end, last)
        return last

    def _wider(self, axis: Axis, summaries: Sequence[list[float]]) -> Extent:
        """Return the range of the full chunks and of other summaries."""
        (start, end), (low, high) = self._extents[axis], _BOUNDS[axis]
        return Extent(
            min(start, *(summary[low] for summary in summaries)), max(end, *(summary[high] for summary in summaries))
        )


def _within(points: PointColumns, axis: Axis, start: float, end: float) -> Iterator[tuple[float, float, float]]:
    for t, step, value in zip(points.t, points.step, points.value, strict=True):
        if axis == "step" and step == NO_STEP:
            continue
        if start <= (t if axis == "time" else step) <= end:
            yield t, step, value


def _last(
    points: PointColumns, axis: Axis, start: float, end: float, later: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the last point of some that were recorded before `later`, or this one."""
    last = later
    for t, step, value in _within(points, axis, start, end):
        x = t if axis == "time" else step
        if last is None or x > last[0] or (x == last[0] and last is not later):
            last = x, value
    return last


def _add(points: PointColumns, buckets: Buckets) -> None:
    is_time = buckets.window.axis == "time"
    if points.value and isfinite(sum(points.value)) and (is_time or min(points.step) != NO_STEP):
        buckets.add_points(points.t if is_time else points.step, points.value)
        return
    xs = points.t if is_time else points.step
    placed = [at for at in range(len(points)) if is_time or points.step[at] != NO_STEP]
    shown = [at for at in placed if isfinite(points.value[at])]
    buckets.add_points([xs[at] for at in shown], [points.value[at] for at in shown])
    for at in placed if len(shown) < len(placed) else ():
        if not isfinite(points.value[at]):
            buckets.add_nonfinite(xs[at], Nonfinite().and_of(points.value[at]))


def _summary(points: PointColumns, offset: int) -> list[float]:
    t, values = points.t, points.value
    steps = [step for step in points.step if step != NO_STEP]
    finite_steps, odd = steps, Nonfinite()
    if not all(map(isfinite, values)):
        shown = [at for at, value in enumerate(values) if isfinite(value)]
        for value in values:
            odd = odd if isfinite(value) else odd.and_of(value)
        t, values = array("d", [t[at] for at in shown]), array("d", [values[at] for at in shown])
        finite_steps = [points.step[at] for at in shown if points.step[at] != NO_STEP]
    return [
        len(values),
        sum(values),
        min(values, default=inf),
        max(values, default=-inf),
        sum(t),
        min(points.t, default=inf),
        max(points.t, default=-inf),
        len(steps),
        sum(finite_steps),
        min(steps, default=inf),
        max(steps, default=-inf),
        offset,
        *odd,
    ]
