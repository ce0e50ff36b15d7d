"""Points of a curve in columns, and down-sampling of them; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from math import isnan
from typing import TYPE_CHECKING, Protocol, TypeVar, overload

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


Number_co = TypeVar("Number_co", bound=float, covariant=True)

NO_STEP = -(2**63)
"""Stands in a column of steps for a point without a step."""

FEWEST_POINTS = 5
"""The first, the last, the lowest, the highest point and a NaN."""

_WORTH_SLICES = 8
"""Stretches of at least this length are reduced while they are added."""


class NumberColumn(Protocol[Number_co]):
    """Numbers of points, in order; a slice is an array or list."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Number_co]: ...
    @overload
    def __getitem__(self, at: int, /) -> Number_co: ...
    @overload
    def __getitem__(self, at: slice, /) -> Iterable[Number_co]: ...


class PointSource(Protocol):
    """Points in the order in which they were recorded."""

    @property
    def t(self) -> NumberColumn[float]:
        """Unix seconds."""

    @property
    def step(self) -> NumberColumn[int]:
        """Steps, `NO_STEP` for none."""

    @property
    def value(self) -> array[float]:
        """Values."""

    def __len__(self) -> int: ...


class PointColumns:
    """Points in the order in which they were recorded: Unix seconds, steps, values."""

    __slots__ = ("step", "t", "value")

    def __init__(self, t: Iterable[float] = (), step: Iterable[int] = (), value: Iterable[float] = ()) -> None:
        self.t = array("d", t)
        self.step = array("q", step)
        self.value = array("d", value)

    def __len__(self) -> int:
        return len(self.value)

    def append(self, t: float, step: int, value: float) -> None:
        """Add one point."""
        self.t.append(t)
        self.step.append(step)
        self.value.append(value)

    def extend(self, other: PointSource, start: int = 0, end: int | None = None) -> None:
        """Add the points of `other` from `start` until before `end`."""
        self.t.extend(other.t[start:end])
        self.step.extend(other.step[start:end])
        self.value.extend(other.value[start:end])

    def add_from(self, other: PointSource, at: int) -> None:
        """Add one point of `other`."""
        self.append(other.t[at], other.step[at], other.value[at])

    def select(self, positions: Sequence[int]) -> PointColumns:
        """Return the points at some positions."""
        t, step, value = self.t, self.step, self.value
        return PointColumns(
            [t[at] for at in positions], [step[at] for at in positions], [value[at] for at in positions]
        )


class PointSampler:
    """A growing curve, down-sampled to at most `points` points; all points for None.

    The curve is cut into stretches of 1, 2, 4, 8 … points, as short as possible. Of each stretch its lowest and its
    highest point are kept and its first NaN, besides the first and the last point of all. The result does not depend
    on how many points are added at a time. Memory: about 128 bytes for each of `points`, 24 for each point for None.

    Raises:
        ConfigurationError: `points` is less than 5.
    """

    def __init__(self, points: int | None) -> None:
        if points is not None and points < FEWEST_POINTS:
            raise ConfigurationError(f"points={points!r}: too few for a curve; pass {FEWEST_POINTS} or more, or None")
        self._points = points
        self._limit = 0 if points is None else 4 * points
        self._kept = PointColumns()
        self._index = array("q")
        self._last = PointColumns()
        self._stretch = 1
        self.count = 0
        """Number of added points."""

    @property
    def first_t(self) -> float:
        """Time of the first point, in Unix seconds; 0 without points."""
        return self._kept.t[0] if self._kept.t else 0.0

    def extend(self, added: PointSource) -> None:
        """Add points."""
        size = len(added)
        if not size:
            return
        if self._points is None:
            self._kept.extend(added)
            self.count += size
            return
        self._last = PointColumns()
        self._last.add_from(added, size - 1)
        has_nan = isnan(sum(added.value))  # also for infinities of both signs, which only costs time
        at = 0
        while at < size:
            end = min(size, at + self._stretch - self.count % self._stretch)
            if self._stretch < _WORTH_SLICES:
                end = min(size, at + self._limit)
                self._kept.extend(added, at, end)
                self._index.extend(range(self.count, self.count + end - at))
            else:
                for position in _extremes(added.value, at, end, has_nan=has_nan):
                    self._kept.add_from(added, position)
                    self._index.append(self.count + position - at)
            self.count += end - at
            at = end
            if len(self._index) > self._limit:
                self._compact()

    def sampled(self) -> PointColumns:
        """Return at most `points` points; all of them if there are not more, or for None."""
        if self._points is None:
            return self._kept
        index, kept = _reduced(self._index, self._kept, self._stretch)
        stretch = self._stretch
        while len(kept) + (index[-1:] != array("q", [self.count - 1])) > self._points:
            stretch *= 2
            index, kept = _reduced(index, kept, stretch)
        if self.count and index[-1] != self.count - 1:
            kept.extend(self._last)
        return kept

    def _compact(self) -> None:
        """Make stretches longer, never longer than those of the final result."""
        self._index, self._kept = _reduced(self._index, self._kept, self._stretch)
        while len(self._index) > self._limit // 2:
            self._stretch *= 2
            self._index, self._kept = _reduced(self._index, self._kept, self._stretch)


def sample(curves: Sequence[PointSampler], points: int | None) -> list[PointColumns]:
    """Return curves that follow each other with at most `points` points in all.

    The first point of the first and the last point of the last curve are kept, and the lowest and highest of all. None
    keeps all points.
    """
    parts = [curve.sampled() for curve in curves]
    total = sum(map(len, parts))
    if points is None or total <= points:
        return parts
    joined, owner = PointColumns(), array("q")
    for number, part in enumerate(parts):
        joined.extend(part)
        owner.extend([number] * len(part))
    positions, stretch = range(total), 1
    kept: Sequence[int] = positions
    while len(kept) > points:
        stretch *= 2
        kept = _positions(array("q", kept), joined.select(kept), stretch)
        kept = sorted({*kept, total - 1})
    shown = [PointColumns() for _ in parts]
    for at in kept:
        shown[owner[at]].add_from(joined, at)
    return shown


def _positions(index: array[int], columns: PointColumns, stretch: int) -> list[int]:
    return [index[at] for at in _selected(index, columns.value, stretch)]


def _reduced(index: array[int], columns: PointColumns, stretch: int) -> tuple[array[int], PointColumns]:
    """Return the extremes of each stretch, with their numbers in the whole curve."""
    positions = _selected(index, columns.value, stretch)
    return array("q", [index[at] for at in positions]), columns.select(positions)


def _selected(index: array[int], value: array[float], stretch: int) -> list[int]:
    if stretch == 1:
        return list(range(len(index)))
    has_nan = isnan(sum(value))
    positions = []
    start, size = 0, len(index)
    while start < size:
        end = bisect_left(index, (index[start] // stretch + 1) * stretch, start)
        shown = _extremes(value, start, end, has_nan=has_nan)
        if start == 0 and shown[0] != 0:
            shown = [0, *shown]
        positions += shown
        start = end
    return positions


def _extremes(value: array[float], start: int, end: int, *, has_nan: bool) -> list[int]:
    """Return the sorted positions of the first lowest, highest and NaN value."""
    if end - start == 1:
        return [start]
    stretch = value[start:end]
    if has_nan:
        numbers = [at for at, number in enumerate(stretch) if number == number]  # noqa: PLR0124 - not NaN
        nan = next((at for at, number in enumerate(stretch) if isnan(number)), None)
        shown = set() if nan is None else {nan}
        if numbers:
            shown |= {min(numbers, key=stretch.__getitem__), max(numbers, key=stretch.__getitem__)}
        return [start + at for at in sorted(shown)]
    low, high = stretch.index(min(stretch)), stretch.index(max(stretch))
    return [start + low, start + high] if low < high else [start + high, start + low] if high < low else [start + low]
