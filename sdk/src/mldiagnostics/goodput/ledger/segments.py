"""The timeline of a run as segments without gaps; pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.account import TimelineSegment
from mldiagnostics.goodput.ledger.phases import BUCKET_OF_PHASE, OTHER, PRODUCTIVE, RECOVERY, STARTUP, WASTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimelines
    from mldiagnostics.goodput.ledger.phases import AttemptTimeline

_Piece: TypeAlias = "tuple[int, int, int, int | None]"
"""Start, end, phase of the attempt (an index of `BUCKET_OF_PHASE`) and step."""


def segments(progress: AttemptTimelines, start: int, end: int) -> Iterator[TimelineSegment]:
    """Yield the segments of the run from `start` to `end`, without gaps.

    `start` and `end` are microseconds within the run.
    """
    return _merge(_with_spans(progress, start, end))


def _with_spans(progress: AttemptTimelines, start: int, end: int) -> Iterator[TimelineSegment]:
    """Yield the pieces of the attempts with the visible spans laid over them (R5)."""
    span_overlay = progress.span_overlay
    spans = span_overlay.between(start, end)
    span = next(spans, None)
    reached = start
    for left, right, kind, step in _under_spans(progress, start):
        reached = max(reached, left)
        limit = min(right, end)
        while span and span[0] < limit:
            yield TimelineSegment(reached, span[0], BUCKET_OF_PHASE[kind], step)
            yield TimelineSegment(span[0], span[1], span_overlay.bucket_of(span[2]))
            reached = span[1]
            span = next(spans, None)
        yield TimelineSegment(reached, limit, BUCKET_OF_PHASE[kind], step)
        if right >= end:
            break


def _under_spans(progress: AttemptTimelines, start: int) -> Iterator[_Piece]:
    """Yield the pieces under the spans, from the attempt at `start` to the run's end."""
    timelines = progress.timelines
    first = max(0, bisect_right(progress.fold.folded.begin, start) - 1)
    yield start, timelines[first].begin if timelines else progress.until, OTHER, None
    for timeline in timelines[first:]:
        yield timeline.begin, timeline.start, OTHER, None
        yield from _step_pieces(progress, timeline, start)
        running = timeline is timelines[-1] and progress.restart is None
        yield timeline.last_end, timeline.until, OTHER if running else RECOVERY, None
    if progress.restart is not None:
        yield progress.restart, progress.until, OTHER, None


def _step_pieces(progress: AttemptTimelines, timeline: AttemptTimeline, start: int) -> Iterator[_Piece]:
    folded = progress.fold.folded
    row = max(timeline.first, bisect_right(folded.at, start, timeline.first, timeline.last + 1) - 1)
    if row == timeline.first:
        yield timeline.start, timeline.startup, STARTUP, folded.index[row]
    for each in range(row, timeline.last + 1):
        begin = max(folded.at[each], timeline.startup)
        end = folded.at[each + 1] if each < timeline.last else timeline.last_end
        yield begin, end, PRODUCTIVE if each < timeline.kept else WASTED, folded.index[each]


def _merge(pieces: Iterable[TimelineSegment]) -> Iterator[TimelineSegment]:
    """Join neighbours with the same bucket and step; drop segments of length zero."""
    last: TimelineSegment | None = None
    for piece in pieces:
        if piece.start >= piece.end:
            continue
        if last and (last.spent, last.step) == (piece.spent, piece.step):
            last = last._replace(end=piece.end)
        else:
            if last:
                yield last
            last = piece
    if last:
        yield last
