"""Time of a step by phases. Pure.

Each instant goes to the first layer that explains it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mldiagnostics_diagnosis.phases import PHASES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.recording import Segment


class Layer:
    """Segments in order and without overlap."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = union(segments)
        self._ends = [end for _, end, _ in self.segments]

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the parts of segments in an interval."""
        parts = []
        for index in range(bisect_left(self._ends, start + 1), len(self.segments)):
            left, right, phase = self.segments[index]
            if left >= end:
                break
            parts.append((max(left, start), min(right, end), phase))
        return parts


def union(segments: Sequence[Segment]) -> list[Segment]:
    """Return segments in order without overlap.

    Of two that overlap, the earlier one has the time.
    """
    merged: list[Segment] = []
    last = -1
    for start, end, phase in sorted(segments):
        if end > last:
            merged.append((max(start, last), end, phase))
            last = end
    return merged


def partition(start: int, end: int, layers: Sequence[Layer]) -> dict[Phase, int]:
    """Return the picoseconds of each phase in an interval; they add up to its length.

    Args:
        start: Start of the interval.
        end: Its end.
        layers: The first one that has a segment at an instant decides; `idle` is where none has.
    """
    spent: dict[Phase, int] = dict.fromkeys(PHASES, 0)
    free = [(start, end)]
    for layer in layers:
        left: list[tuple[int, int]] = []
        for gap_start, gap_end in free:
            at = gap_start
            for part_start, part_end, phase in layer.between(gap_start, gap_end):
                if part_start > at:
                    left.append((at, part_start))
                spent[phase] += part_end - part_start
                at = part_end
            if at < gap_end:
                left.append((at, gap_end))
        free = left
    spent["idle"] += sum(gap_end - gap_start for gap_start, gap_end in free)
    return spent
