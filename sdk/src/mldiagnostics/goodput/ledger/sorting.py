"""Very many numbers in order, with little memory beside them; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

_PIECE = 1 << 16
"""So many are numbers of Python at once, at four times the memory."""

_APART = 1 << 10


def in_order(numbers: array[int]) -> array[int]:
    """Return the numbers sorted: each piece of them alone, then all that lies between two cuts, one cut after another.

    Cuts are taken from the sorted pieces at equal distances, so that little more than a piece lies between any two.
    """
    pieces = [array("q", sorted(numbers[first : first + _PIECE])) for first in range(0, len(numbers), _PIECE)]
    if len(pieces) == 1:
        return pieces[0]
    samples = sorted(number for piece in pieces for number in piece[::_APART])
    cuts = sorted(set(samples[:: _PIECE // _APART]))
    found, places = array("q"), [0] * len(pieces)
    for cut in cuts:
        below: list[int] = []
        same = 0
        for number, piece in enumerate(pieces):
            upto = bisect_left(piece, cut, places[number])
            below += piece[places[number] : upto]
            places[number] = bisect_right(piece, cut, upto)
            same += places[number] - upto
        below.sort()
        found.extend(below)
        found.extend(array("q", [cut]) * same)
    rest = [number for piece, place in zip(pieces, places, strict=True) for number in piece[place:]]
    found.extend(sorted(rest))
    return found
