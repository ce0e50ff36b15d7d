"""Rows as a table of text: columns without borders, as kubectl prints them; pure."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

from mldiagnostics.text.terminal import printable

from mldiagnostics_cli.values import DASH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


T = TypeVar("T")

GAP = 3
"""Spaces between two columns."""

NARROWEST = 8
"""Characters that a column keeps where it is cut."""

PHASE_COLOURS: Mapping[str, str] = {"Active": "\x1b[32m", "Failed": "\x1b[31m", "Pending": "\x1b[33m"}
_PLAIN = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class TableColumn(Generic[T]):
    """One column of a table.

    Args:
        title: Heading.
        text: Returns the cell of a row.
        is_wide: Whether only `-o wide` shows it.
        is_number: Whether cells are aligned on the right.
        is_optional: Whether the column is left out if no row has a value.
        is_whole: Whether its cells are never cut; the last columns are left out first.
        least: Characters that its cells keep before the last columns are left out.
        colours: Colours of cells by their first word.
    """

    title: str
    text: Callable[[T], str]
    is_wide: bool = False
    is_number: bool = False
    is_optional: bool = False
    is_whole: bool = False
    least: int = NARROWEST
    colours: Mapping[str, str] | None = None


def table(
    rows: Iterable[T],
    columns: Sequence[TableColumn[T]],
    *,
    width: int | None = None,
    colour: bool = False,
    at_least: Sequence[int] = (),
    heading: bool = True,
) -> list[str]:
    """Return the lines of a table.

    Args:
        rows: Entries, one per line.
        columns: Columns, from left to right.
        width: Columns of the terminal: the widest cells are cut to fit, then the last columns are left out; None cuts
            nothing.
        colour: Whether cells have colours.
        at_least: Widths of the columns that were printed before.
        heading: Whether the first line has the titles.
    """
    rows = list(rows)
    columns = [each for each in columns if not each.is_optional or any(each.text(row) != DASH for row in rows)]
    lines = _cells(rows, columns)
    widths = _widths(lines, at_least)
    if width is not None:
        least = [size if column.is_whole else column.least for size, column in zip(widths, columns, strict=True)]
        widths = _fitted(widths, width, least)
        columns, lines = columns[: len(widths)], [cells[: len(widths)] for cells in lines]
    return [
        _line(cells, widths, columns, colour=colour and number > 0)
        for number, cells in enumerate(lines)
        if number or heading
    ]


def cell_widths(rows: Iterable[T], columns: Sequence[TableColumn[T]], *, at_least: Sequence[int] = ()) -> list[int]:
    """Return the widths of the columns, so that later rows can stand below these."""
    return _widths(_cells(rows, columns), at_least)


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(each) for each in text)


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` columns, with `…` where it is cut."""
    if display_width(text) <= width:
        return text
    shown, taken = [], 1
    for each in text:
        taken += _width(each)
        if taken > width:
            break
        shown.append(each)
    return "".join(shown) + "…"


def cut_middle(text: str, width: int) -> str:
    """Return a text of at most `width` columns, with `…` in its middle if cut.

    The width is 3 at least.

    >>> cut_middle("sweep-7-learning-rate-0.01", 12)
    'sweep-…-0.01'
    """
    if display_width(text) <= width:
        return text
    end = cut(text[::-1], width // 2).removesuffix("…")[::-1]
    return cut(text, width - display_width(end)) + end


def fitting_columns(columns: Sequence[TableColumn[T]], width: int) -> int:
    """Return how many of the first columns fit a terminal with their least widths."""
    ends = accumulate((column.least for column in columns), lambda end, least: end + GAP + least)
    return sum(end <= width for end in ends)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text of exactly `width` columns, cut or filled with spaces."""
    text = cut(text, width)
    spaces = " " * (width - display_width(text))
    return spaces + text if right else text + spaces


def painted(text: str, colours: Mapping[str, str] | None) -> str:
    """Return a text in the colour of its first word."""
    paint = (colours or {}).get(text.strip().partition(" ")[0])
    return f"{paint}{text}{_PLAIN}" if paint else text


def _cells(rows: Iterable[T], columns: Sequence[TableColumn[T]]) -> list[list[str]]:
    titles = [printable(column.title) for column in columns]
    return [titles, *([printable(column.text(row)) for column in columns] for row in rows)]


def _widths(lines: Sequence[Sequence[str]], at_least: Sequence[int]) -> list[int]:
    widths = [max(map(display_width, cells)) for cells in zip(*lines, strict=True)]
    return [max(pair) for pair in zip(widths, at_least, strict=True)] if at_least else widths


def _fitted(widths: Sequence[int], width: int, least: Sequence[int]) -> list[int]:
    """Return the widths of the columns that fit the terminal.

    The widest columns shrink, each to its least width; then the last ones are left out.
    """
    for count in range(len(widths), 0, -1):
        fitted = list(widths[:count])
        excess = sum(fitted) + GAP * (count - 1) - width
        while excess > 0 and (elastic := [place for place in range(count) if fitted[place] > least[place]]):
            fitted[max(elastic, key=fitted.__getitem__)] -= 1
            excess -= 1
        if excess <= 0:
            return fitted
    return [max(1, width)] * min(1, len(widths))


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[TableColumn[T]], *, colour: bool) -> str:
    last = len(columns) - 1
    shown = []
    for place, (cell, size, column) in enumerate(zip(cells, widths, columns, strict=True)):
        text = padded(cell, size, right=column.is_number)
        if place == last and not column.is_number:
            text = text.rstrip()
        shown.append(painted(text, column.colours) if colour else text)
    return (" " * GAP).join(shown)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
