"""Sorting of many numbers with little extra memory; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

_PIECE = 1 << 16
"""Numbers that are Python objects at once: these take four times the memory."""

_SAMPLE_DISTANCE = 1 << 10


def in_order(numbers: array[int]) -> array[int]:
    """Return the numbers sorted.

    Pieces are sorted alone, then merged between cuts. Cuts are samples of the sorted pieces at equal distances, so that
    little more than one piece lies between two of them.
    """
    pieces = [array("q", sorted(numbers[first : first + _PIECE])) for first in range(0, len(numbers), _PIECE)]
    if len(pieces) == 1:
        return pieces[0]
    samples = sorted(number for piece in pieces for number in piece[::_SAMPLE_DISTANCE])
    cuts = sorted(set(samples[:: _PIECE // _SAMPLE_DISTANCE]))
    ordered, starts = array("q"), [0] * len(pieces)
    for cut in cuts:
        below: list[int] = []
        equal = 0
        for number, piece in enumerate(pieces):
            upto = bisect_left(piece, cut, starts[number])
            below += piece[starts[number] : upto]
            starts[number] = bisect_right(piece, cut, upto)
            equal += starts[number] - upto
        below.sort()
        ordered.extend(below)
        ordered.extend(array("q", [cut]) * equal)
    rest = [number for piece, start in zip(pieces, starts, strict=True) for number in piece[start:]]
    ordered.extend(sorted(rest))
    return ordered
