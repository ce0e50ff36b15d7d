"""Points of a block whose lines differ in their numbers alone; pure.

Most blocks are of this kind. Their values are parsed at once, times and steps where they are looked at: down-sampling
keeps few points.
"""

from __future__ import annotations

import re
from array import array
from math import nan
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from mldiagnostics.runs.points import NO_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mldiagnostics.runs.points import NumberColumn


Number = TypeVar("Number", bound=float)

_NUMERALS = b"0123456789+-.e"
_TIME = re.compile(rb'"t":(-?[0-9]+(?:\.[0-9]+)?(?:e(?:-[0-9]{1,3}|\+?[0-9]{1,2}))?),"name":')
_STEP = re.compile(rb',"step":(-?[0-9]{1,18})[,}]')


def uniform_points(block: bytes, first: re.Match[bytes], lines: int) -> UniformPoints | None:
    """Return the points of a block; None if its lines are not of one curve.

    Args:
        block: A newline, then whole lines.
        first: The first line and the newline before it. Groups: time, name, value, nonfinite, step, labels, unit.
        lines: Number of lines.
    """
    _, name, value, _, step, labels, unit = first.groups()
    texts = [b',"name":' + name + b","]
    texts += [b',"labels":' + labels] if labels else []
    texts += [b',"unit":' + unit] if unit else []
    if value is None or any(block.count(text) != lines for text in texts):
        return None
    if block.translate(None, _NUMERALS) != first[0].translate(None, _NUMERALS) * lines + b"\n":
        return None
    pieces = block.split(b',"value":')
    after = block[first.end(3) : first.end(3) + 1]
    try:
        values = array("d", [float(piece.partition(after)[0]) for piece in pieces[1:]])
    except ValueError:
        return None
    return UniformPoints(block, pieces, values, has_steps=step is not None) if len(values) == lines else None


class UniformPoints:
    """Points in the order of their lines."""

    def __init__(self, block: bytes, pieces: list[bytes], value: array[float], *, has_steps: bool) -> None:
        self.t: NumberColumn[float] = _TextColumn(block, pieces[:-1], _TIME, parse=float, missing=nan)
        self.step: NumberColumn[int] = array("q", [NO_STEP]) * len(value)
        if has_steps:
            self.step = _TextColumn(block, pieces[1:], _STEP, parse=int, missing=NO_STEP)
        self.value = value

    def __len__(self) -> int:
        return len(self.value)


class _TextColumn(Generic[Number]):
    """Numbers that are parsed on access; a slice is a list.

    Args:
        block: The text of all lines.
        pieces: The part of each line that has its number.
        pattern: Finds a number, once in each line.
        parse: Returns the number of a text that the pattern has found.
        missing: Stands for a number that the pattern does not find.
    """

    def __init__(
        self,
        block: bytes,
        pieces: list[bytes],
        pattern: re.Pattern[bytes],
        *,
        parse: Callable[[bytes], Number],
        missing: Number,
    ) -> None:
        self._block, self._pieces, self._pattern = block, pieces, pattern
        self._parse, self._missing = parse, missing

    def __len__(self) -> int:
        return len(self._pieces)

    @overload
    def __getitem__(self, at: int) -> Number: ...
    @overload
    def __getitem__(self, at: slice) -> list[Number]: ...
    def __getitem__(self, at: int | slice) -> Number | list[Number]:
        if not isinstance(at, slice):
            return self._number(self._pieces[at])
        texts = self._pattern.findall(self._block)
        if len(texts) != len(self._pieces):
            return [self._number(piece) for piece in self._pieces[at]]
        return list(map(self._parse, texts[at]))

    def __iter__(self) -> Iterator[Number]:
        return iter(self[:])

    def _number(self, piece: bytes) -> Number:
        match = self._pattern.search(piece)
        return self._parse(match[1]) if match else self._missing
