"""The timeline in few pieces: true areas, nothing lost, a bound on how many."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.account import Bucket, TimelineSegment
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.render.timeline import TimelinePiece, pieces

EVAL = Bucket(BadputType.CUSTOM_BADPUT_EVENTS, "EVAL")
OTHER = Bucket(BadputType.OTHER)
KINDS = (None, EVAL, OTHER)


def adjacent(parts: list[tuple[int, int]]) -> list[TimelineSegment]:
    """Segments of the lengths and kinds given, one after the other from 100 on."""
    made, at = [], 100
    for step, (length, kind) in enumerate(parts):
        made.append(TimelineSegment(at, at + length, KINDS[kind], step if kind == 0 else None))
        at += length
    return made


timelines = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 2)), min_size=1, max_size=60).map(adjacent)


def test_steps_in_a_row_are_one_piece() -> None:
    assert list(pieces(adjacent([(10, 0), (10, 0), (10, 0)]), resolution=1)) == [
        TimelinePiece(100, 130, {"PRODUCTIVE": 30}, 0, 2)
    ]


def test_a_step_around_an_event_keeps_its_number() -> None:
    drawn = list(pieces(adjacent([(10, 0), (5, 1), (10, 0)]), resolution=1))
    assert [(piece.first_step, piece.last_step) for piece in drawn] == [(0, 0), (None, None), (2, 2)]
    assert drawn[1].kinds == {"CUSTOM_BADPUT_EVENTS.EVAL": 5}


def test_short_pieces_are_merged_with_their_shares() -> None:
    drawn = list(pieces(adjacent([(100, 0), (2, 1), (3, 2), (2, 1), (100, 0)]), resolution=50))
    assert [piece.kinds for piece in drawn] == [
        {"PRODUCTIVE": 100},
        {"CUSTOM_BADPUT_EVENTS.EVAL": 4, "OTHER": 3},
        {"PRODUCTIVE": 100},
    ]


def test_no_piece_crosses_a_cut() -> None:
    drawn = list(pieces(adjacent([(2, 0), (8, 0), (10, 0)]), resolution=1000, cuts=[90, 100, 105, 110, 500]))
    assert [(piece.start, piece.end) for piece in drawn] == [(100, 105), (105, 110), (110, 120)]


@given(timelines, st.integers(1, 200), st.lists(st.integers(0, 3000), max_size=4))
def test_pieces_are_few_and_cover_everything(segments: list[TimelineSegment], resolution: int, cuts: list[int]) -> None:
    drawn = list(pieces(iter(segments), resolution=resolution, cuts=cuts))
    assert (drawn[0].start, drawn[-1].end) == (segments[0].start, segments[-1].end)
    assert all(one.end == other.start for one, other in pairwise(drawn))
    assert all(sum(piece.kinds.values()) == piece.end - piece.start for piece in drawn)
    assert {cut for cut in cuts if segments[0].start < cut < segments[-1].end} <= {piece.start for piece in drawn}
    for spent, name in ((None, "PRODUCTIVE"), (EVAL, "CUSTOM_BADPUT_EVENTS.EVAL"), (OTHER, "OTHER")):
        there = sum(segment.end - segment.start for segment in segments if segment.spent == spent)
        assert sum(piece.kinds.get(name, 0) for piece in drawn) == there
    fitting = (segments[-1].end - segments[0].start) // resolution
    assert len(drawn) <= 2 * fitting + 1 + 2 * len(set(cuts))
