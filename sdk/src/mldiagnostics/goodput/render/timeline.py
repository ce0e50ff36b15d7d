"""Reduction of the timeline to as many pieces as a picture can show; pure.

Neighbours of one kind are joined. Pieces shorter than the resolution are merged into mixed pieces with the time of each
kind, so that areas stay correct. The result has at most two pieces per interval of the resolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.goodput.render.palette import PRODUCTIVE
from mldiagnostics.goodput.report.build import bucket_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mldiagnostics.goodput.account import Bucket, TimelineSegment


_NEVER = 2**63


class TimelinePiece(NamedTuple):
    """An interval in microseconds, with the time of each kind (bucket or PRODUCTIVE)."""

    start: int
    end: int
    kinds: Mapping[str, int]
    first_step: int | None = None
    last_step: int | None = None


def pieces(
    segments: Iterable[TimelineSegment], *, resolution: int, cuts: Iterable[int] = ()
) -> Iterator[TimelinePiece]:
    """Yield adjacent pieces that cover the segments; no piece crosses a cut."""
    bounds = frozenset(cuts)
    gathered: TimelinePiece | None = None
    for piece in _of_one_kind(segments, sorted(bounds)):
        if gathered and (piece.start in bounds or not _both_short(gathered, piece, resolution)):
            yield gathered
            gathered = None
        gathered = _joined(gathered, piece) if gathered else piece
    if gathered:
        yield gathered


def _of_one_kind(segments: Iterable[TimelineSegment], cuts: Sequence[int]) -> Iterator[TimelinePiece]:
    """Yield joined neighbours of one kind, divided at the cuts; a hot loop."""
    start = end = 0
    spent: Bucket | None = None
    first: int | None = None
    last: int | None = None
    ahead = iter(cuts)
    cut = next(ahead, _NEVER)
    for left, right, kind, step in segments:
        if kind != spent or left >= cut or start == end:
            if start < end:
                yield _piece(start, end, spent, first, last)
            start, spent, first = left, kind, step
            while cut <= left:
                cut = next(ahead, _NEVER)
        while cut < right:
            yield _piece(start, cut, spent, first, step)
            start, first, cut = cut, step, next(ahead, _NEVER)
        end, last = right, step
    if start < end:
        yield _piece(start, end, spent, first, last)


def _piece(start: int, end: int, spent: Bucket | None, first: int | None, last: int | None) -> TimelinePiece:
    return TimelinePiece(start, end, {bucket_name(spent) if spent else PRODUCTIVE: end - start}, first, last)


def _both_short(one: TimelinePiece, other: TimelinePiece, resolution: int) -> bool:
    return one.end - one.start < resolution and other.end - other.start < resolution


def _joined(one: TimelinePiece, other: TimelinePiece) -> TimelinePiece:
    kinds = dict(one.kinds)
    for kind, length in other.kinds.items():
        kinds[kind] = kinds.get(kind, 0) + length
    first = other.first_step if one.first_step is None else one.first_step
    return TimelinePiece(
        one.start, other.end, kinds, first, one.last_step if other.last_step is None else other.last_step
    )
