"""Buckets of a visible window: number, mean, lowest and highest value; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from math import inf, isnan
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


Axis = Literal["step", "time"]

_WORTH_SLICES: Final = 8
"""Ordered points of a bucket that are added at once if they are more."""


@dataclass(frozen=True, slots=True)
class Window:
    """A range of the x axis, both ends included, in buckets of equal width."""

    axis: Axis
    start: float
    end: float
    buckets: int

    @property
    def width(self) -> float:
        """Width of one bucket."""
        return (self.end - self.start) / self.buckets

    def bucket(self, x: float) -> int:
        """Return the bucket of an x within the window."""
        if self.end <= self.start:
            return 0
        return min(self.buckets - 1, int((x - self.start) / (self.end - self.start) * self.buckets))


class Nonfinite(NamedTuple):
    """Numbers of values that are not finite."""

    nan: int = 0
    plus: int = 0
    minus: int = 0

    @property
    def total(self) -> int:
        """Return how many there are together."""
        return self.nan + self.plus + self.minus

    def and_of(self, value: float) -> Nonfinite:
        """Return the numbers with one more value that is not finite."""
        if isnan(value):
            return self._replace(nan=self.nan + 1)
        return self._replace(plus=self.plus + 1) if value > 0 else self._replace(minus=self.minus + 1)

    def and_all(self, other: Nonfinite) -> Nonfinite:
        """Return the sum of both."""
        return Nonfinite(self.nan + other.nan, self.plus + other.plus, self.minus + other.minus)


def _zeros(size: int) -> array[float]:
    return array("d", bytes(8 * size))


@dataclass(slots=True)
class Buckets:
    """Values of a window: of one curve, or of several together."""

    window: Window
    count: array[float] = field(init=False)
    x: array[float] = field(init=False)
    """Sums, as `value` is."""
    value: array[float] = field(init=False)
    low: array[float] = field(init=False)
    high: array[float] = field(init=False)
    nonfinite: dict[int, tuple[float, Nonfinite]] = field(default_factory=dict)
    """Buckets with values that are not finite: the x of the first one, and how many."""

    def __post_init__(self) -> None:
        size = self.window.buckets
        self.count, self.x, self.value = _zeros(size), _zeros(size), _zeros(size)
        self.low, self.high = array("d", [inf]) * size, array("d", [-inf]) * size

    def add_points(self, xs: Sequence[float], values: Sequence[float]) -> None:
        """Add finite points; those outside the window are left out."""
        ordered = list(xs)
        if ordered == sorted(ordered):
            self._add_ordered(ordered, values)
        else:
            self._add_each(xs, values)

    def _add_ordered(self, xs: Sequence[float], values: Sequence[float]) -> None:
        """Add points in the order of x.

        Those of one bucket are added at once where that is less work.
        """
        window = self.window
        at, end = bisect_left(xs, window.start), bisect_right(xs, window.end)
        if at >= end:
            return
        if end - at < _WORTH_SLICES * (window.bucket(xs[end - 1]) - window.bucket(xs[at]) + 1):
            self._add_each(xs[at:end], values[at:end])
            return
        while at < end:
            bucket = window.bucket(xs[at])
            after = self._end_of(bucket, xs, at, end)
            part = values[at:after]
            self.count[bucket] += after - at
            self.x[bucket] += sum(xs[at:after])
            self.value[bucket] += sum(part)
            lowest, highest = min(part), max(part)
            self.low[bucket] = min(self.low[bucket], lowest)
            self.high[bucket] = max(self.high[bucket], highest)
            at = after

    def _end_of(self, bucket: int, xs: Sequence[float], at: int, end: int) -> int:
        """Return the index after the points of a bucket, of which the first is at `at`.

        The end of the bucket finds it, except where `Window.bucket` rounds.
        """
        window = self.window
        after = bisect_left(xs, window.start + (bucket + 1) * window.width, at + 1, end)
        while after < end and window.bucket(xs[after]) == bucket:
            after += 1
        while after > at + 1 and window.bucket(xs[after - 1]) != bucket:
            after -= 1
        return after

    def _add_each(self, xs: Sequence[float], values: Sequence[float]) -> None:
        start, end, bucket = self.window.start, self.window.end, self.window.bucket
        count, x_sums, value_sums, low, high = self.count, self.x, self.value, self.low, self.high
        for x, value in zip(xs, values, strict=True):
            if start <= x <= end:
                at = bucket(x)
                count[at] += 1
                x_sums[at] += x
                value_sums[at] += value
                if value < low[at]:  # noqa: PLR1730 - a call for each point costs a third of the time
                    low[at] = value
                if value > high[at]:  # noqa: PLR1730 - as above
                    high[at] = value

    def add_summary(self, *, count: float, x: float, value: float, low: float, high: float) -> None:
        """Add several points at their mean x: `x` and `value` are sums."""
        at = self.window.bucket(x / count)
        self.count[at] += count
        self.x[at] += x
        self.value[at] += value
        self.low[at] = min(self.low[at], low)
        self.high[at] = max(self.high[at], high)

    def add_nonfinite(self, x: float, values: Nonfinite) -> None:
        """Add values that are not finite, of which the first is at x.

        Those outside the window are left out.
        """
        if self.window.start <= x <= self.window.end:
            at = self.window.bucket(x)
            first, known = self.nonfinite.get(at, (x, Nonfinite()))
            self.nonfinite[at] = min(first, x), known.and_all(values)

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the whole window.

        They are exact, however wide its buckets are.
        """
        count = int(sum(self.count))
        odd = Nonfinite()
        for _, each in self.nonfinite.values():
            odd = odd.and_all(each)
        return {
            "count": count + odd.total,
            "nonfinite": odd._asdict(),
            "lowest": min(self.low) if count else None,
            "highest": max(self.high) if count else None,
            "average": sum(self.value) / count if count else None,
        }

    def means(self) -> list[tuple[int, float, float]]:
        """Return index, mean x and mean value of each bucket with points."""
        return [(at, self.x[at] / count, self.value[at] / count) for at, count in enumerate(self.count) if count]

    def to_json(self) -> dict[str, Any]:
        """Return the buckets with points, in columns.

        `low` and `high` are left out if each bucket has one value.
        """
        used = [at for at, count in enumerate(self.count) if count]
        digits = 1 if self.window.axis == "step" else 3
        columns: dict[str, Any] = {
            "x": [round(self.x[at] / self.count[at], digits) for at in used],
            "mean": [_short(self.value[at] / self.count[at]) for at in used],
        }
        if self.nonfinite:
            odd = sorted(self.nonfinite.values())
            columns["nonfinite"] = {
                "x": [round(x, digits) for x, _ in odd],
                **{name: [getattr(each, name) for _, each in odd] for name in Nonfinite._fields},
            }
        if any(self.low[at] != self.high[at] for at in used):
            columns["low"] = [_short(self.low[at]) for at in used]
            columns["high"] = [_short(self.high[at]) for at in used]
        return columns


def _short(value: float) -> float:
    """Return a number with seven digits.

    A chart does not show more, and they are half of the bytes.
    """
    return float(f"{value:.7g}")
