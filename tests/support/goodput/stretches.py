"""Stretches of time, their overlaps and differences: slowly and by definition."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from mldiagnostics.goodput.buckets import BadputType
from support.goodput.reading import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.goodput.account import TimelineSegment

Piece = tuple[int, int]
OWNED = {BadputType.TPU_INITIALIZATION, BadputType.TRAINING_PREP}


def merged(segments: Iterable[TimelineSegment]) -> list[TimelineSegment]:
    """Return the segments with equal neighbours merged."""
    joined: list[TimelineSegment] = []
    for segment in segments:
        if joined and (joined[-1].spent, joined[-1].step, joined[-1].end) == (
            segment.spent,
            segment.step,
            segment.start,
        ):
            joined[-1] = joined[-1]._replace(end=segment.end)
        elif segment.start < segment.end:
            joined.append(segment)
    return joined


def seen(spans: Sequence[Span]) -> list[Span]:
    """Return the visible parts of overlapping spans (R5, R12)."""
    cuts = sorted({moment for span in spans for moment in (span.start, span.end)})
    visible = []
    for a, b in pairwise(cuts):
        active = [span for span in spans if span.start <= a and b <= span.end]
        if any(span.spent.bucket is BadputType.ELASTIC_REINITIALIZATION for span in active):
            active = [span for span in active if span.spent.bucket not in OWNED]
        if active:
            top = min(active, key=lambda s: (-s.start, s.end, s.spent.bucket.value, s.spent.custom))
            visible.append(Span(a, b, top.spent))
    return visible


def common(one: Piece, other: Piece) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def union(spans: Sequence[Span], stretch: Piece) -> int:
    free = without(stretch, [(span.start, span.end) for span in spans])
    return stretch[1] - stretch[0] - sum(b - a for a, b in free)


def without(stretch: Piece, gone: Iterable[Piece]) -> list[Piece]:
    """Return the rest of a stretch."""
    left, at = [], stretch[0]
    for a, b in sorted((a, b) for a, b in gone if a < b):
        if at < min(a, stretch[1]):
            left.append((at, min(a, stretch[1])))
        at = max(at, b)
    return [*left, (at, stretch[1])] if at < stretch[1] else left
