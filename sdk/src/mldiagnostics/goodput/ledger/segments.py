"""The timeline of a run, piece by piece; pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.account import TimelineSegment
from mldiagnostics.goodput.ledger.attempt_timeline import OTHER, PRODUCTIVE, RECOVERY, SPENT, STARTUP, WASTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimeline, AttemptTimelines

_Piece: TypeAlias = "tuple[int, int, int, int | None]"
"""Start, end, what it is of an attempt, and the step."""


def segments(progress: AttemptTimelines, start: int, end: int) -> Iterator[TimelineSegment]:
    """Return what the job did from `start` to `end` (microseconds, within its life), without a gap."""
    return _merged(_painted(progress, start, end))


def _painted(progress: AttemptTimelines, start: int, end: int) -> Iterator[TimelineSegment]:
    """Lay the spans over the attempts."""
    painting = progress.painting
    spans = painting.between(start, end)
    span = next(spans, None)
    reached = start
    for left, right, kind, step in _pieces(progress, start):
        reached = max(reached, left)
        limit = min(right, end)
        while span and span[0] < limit:
            yield TimelineSegment(reached, span[0], SPENT[kind], step)
            yield TimelineSegment(span[0], span[1], painting.spent(span[2]))
            reached = span[1]
            span = next(spans, None)
        yield TimelineSegment(reached, limit, SPENT[kind], step)
        if right >= end:
            break


def _pieces(progress: AttemptTimelines, start: int) -> Iterator[_Piece]:
    """Return what lies under the spans from the attempt that is on at `start` to the end of the job's life."""
    courses = progress.courses
    first = max(0, bisect_right(progress.fold.told.begin, start) - 1)
    yield start, courses[first].begin if courses else progress.until, OTHER, None
    for course in courses[first:]:
        yield course.begin, course.start, OTHER, None
        yield from _steps(progress, course, start)
        running = course is courses[-1] and progress.restart is None
        yield course.over, course.until, OTHER if running else RECOVERY, None
    if progress.restart is not None:
        yield progress.restart, progress.until, OTHER, None


def _steps(progress: AttemptTimelines, course: AttemptTimeline, start: int) -> Iterator[_Piece]:
    told = progress.fold.told
    place = max(course.first, bisect_right(told.at, start, course.first, course.last + 1) - 1)
    if place == course.first:
        yield course.start, course.startup, STARTUP, told.index[place]
    for each in range(place, course.last + 1):
        begin = max(told.at[each], course.startup)
        end = told.at[each + 1] if each < course.last else course.over
        yield begin, end, PRODUCTIVE if each < course.kept else WASTED, told.index[each]


def _merged(pieces: Iterable[TimelineSegment]) -> Iterator[TimelineSegment]:
    """Return neighbours that say the same as one, and none without length."""
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
