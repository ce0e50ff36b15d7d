"""A curve as lines of text; pure."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from mldiagnostics_cli.values import number

if TYPE_CHECKING:
    from collections.abc import Sequence


HEIGHT = 8
"""Lines of a plot."""

LABEL_WIDTH = 11
_PARTS = " ▁▂▃▄▅▆▇█"
_NOT_A_NUMBER = "!"
_LEAST_COLUMNS = 10


def plot(
    values: Sequence[float],
    *,
    width: int,
    height: int = HEIGHT,
    low: float | None = None,
    high: float | None = None,
) -> list[str]:
    """Return a curve as a bar chart of `height` lines.

    Its highest and lowest value are on the left.

    Each column is the mean of its values; `!` marks a column with a value that is not finite.

    Args:
        values: Values of the curve, in order.
        width: Columns of the whole plot.
        height: Lines of the plot.
        low: Value of the lowest line; by default the lowest value.
        high: Value of the highest line; by default the highest value.
    """
    finite = [value for value in values if isfinite(value)]
    if not finite:
        return []
    low, high = min(finite) if low is None else low, max(finite) if high is None else high
    columns = _columns(values, max(_LEAST_COLUMNS, width - LABEL_WIDTH - 1))
    levels = [None if mean is None else _level(mean, low, high, height) for mean in columns]
    lines = []
    for line in range(height):
        label = number(high) if line == 0 else number(low) if line == height - 1 else ""
        base = (height - 1 - line) * 8
        drawn = "".join(_character(level, base, is_top=line == 0) for level in levels)
        lines.append(f"{label:>{LABEL_WIDTH}} {drawn}".rstrip())
    return lines


def _columns(values: Sequence[float], count: int) -> list[float | None]:
    """Return the mean of each part of the curve; None where a value is not finite."""
    count = min(count, len(values))
    means: list[float | None] = []
    for place in range(count):
        part = values[place * len(values) // count : (place + 1) * len(values) // count]
        means.append(sum(value / len(part) for value in part) if all(map(isfinite, part)) else None)
    return means


def _level(mean: float, low: float, high: float, height: int) -> int:
    """Return the height of a bar in eighths of a line, at least 1."""
    span = high / 2 - low / 2  # halves: the span of two finite numbers may be infinite
    share = (mean / 2 - low / 2) / span if span > 0 else 0.5
    return max(1, min(height * 8, round(share * height * 8)))


def _character(level: int | None, base: int, *, is_top: bool) -> str:
    if level is None:
        return _NOT_A_NUMBER if is_top else " "
    return _PARTS[max(0, min(8, level - base))]
