"""Goodput events of a report, checked and packed again in slices of work; pure.

They are never held one by one: a packed event may have two bytes, and its object 200.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson
from mldiagnostics.goodput.events.packing import Packer, Unpacker
from mldiagnostics_api.reports.models import MAX_EVENTS, InvalidReport

if TYPE_CHECKING:
    from collections.abc import Generator

SLICE: Final = 256
"""Events of a slice: about 1 ms of work."""
LINE_BYTES: Final = 512 * 1024
"""Most bytes of the events that are taken from one report; readers of logs drop lines over a megabyte."""

_SPACE: Final = rb"[ \t\r\n]*+"
_NUMBER: Final = rb"-?[0-9]{1,17}+"
_TEXT: Final = rb'"(?:[^"\\\x00-\x1f]|\\.)*+"'


def _list(*parts: bytes) -> bytes:
    return rb"\[" + _SPACE + (_SPACE + rb"," + _SPACE).join(parts) + _SPACE + rb"\]"


_SIMPLE: Final = rb"(?:" + _NUMBER + rb"|" + _TEXT + rb")"
_ARGUMENT: Final = rb"(?:" + _SIMPLE + rb"|" + _list(_NUMBER, _NUMBER, _SIMPLE) + rb")"
_SHAPES: Final = (
    _NUMBER,
    _list(_NUMBER, _NUMBER),
    _list(_NUMBER, _NUMBER, _ARGUMENT),
    _list(_NUMBER, _NUMBER, _ARGUMENT, _NUMBER, _TEXT),
    rb"\{" + _SPACE + rb'"clock"' + _SPACE + rb":" + _SPACE + _NUMBER + _SPACE + rb"\}",
)
_ITEM: Final = rb"(?>" + rb"|".join(_SHAPES) + rb")" + _SPACE
_ITEMS: Final = re.compile(
    rb"[\[,]" + _SPACE + rb"(" + _ITEM + rb"(?:," + _SPACE + _ITEM + rb"){0,%d}+)(?:(?=,)|(\]))" % (SLICE - 1),
    re.DOTALL,
)
"""The next items of an array, after its bracket or a comma; group 2 is its end."""
_EMPTY: Final = re.compile(rb"\[" + _SPACE + rb"\]")


class PackedEvents(NamedTuple):
    """Events of one process that follow each other."""

    first: int
    """Number of the first one in its process."""
    number: int
    items: bytes
    """Their JSON items, joined by commas; independent of all events before."""
    whole: bool = True
    """False if others of the report did not fit into the memory."""


def repacked(
    items: bytes, first: int, known: int, *, most: int, most_bytes: int
) -> Generator[None, None, PackedEvents]:
    """Return the events of a report that are not known.

    It yields after each slice of work.

    Args:
        items: JSON array of packed items.
        first: Number of its first item in the process.
        known: How many events of the process are known.
        most: Most events to return.
        most_bytes: Most bytes of their items; the rest of the report's events is left out.

    Raises:
        InvalidReport: The items are not packed events.
    """
    unpacker, packer, number = Unpacker(), Packer(), first
    kept, count, whole = bytearray(), 0, True
    wanted = 0 if first > known else most  # behind a gap nothing is kept
    room = min(most_bytes, LINE_BYTES)
    for piece in _pieces(items):
        try:
            entries = unpacker.unpack(piece)
        except ValueError as error:
            raise InvalidReport(f"report: {error}; send what packing.pack returns") from error
        new = entries[max(0, known - number) :][: wanted - count] if whole else []
        number += len(entries)
        if number - first > MAX_EVENTS:
            raise InvalidReport(f"report: events: has more than {MAX_EVENTS} items; send fewer at a time")
        for entry in new:
            text = orjson.dumps(packer.pack(entry))
            if len(kept) + len(text) >= room:
                whole = False
                break
            kept += b"," + text
            count += 1
        yield
    return PackedEvents(max(first, known), count, bytes(kept[1:]), whole=whole)


def _pieces(items: bytes) -> Generator[list[object], None, None]:
    """Yield the items of a JSON array in slices."""
    if _EMPTY.fullmatch(items):
        return
    at = 0
    while True:
        match = _ITEMS.match(items, at)
        if match is None:
            around = items[at + 1 : at + 81].decode("utf-8", "replace")
            raise InvalidReport(f"report: events: {around!r} is not a packed event; send what packing.pack returns")
        try:
            yield orjson.loads(b"[%b]" % match[1])
        except ValueError as error:
            raise InvalidReport(f"report: events: not JSON: {error}; send what packing.pack returns") from error
        at = match.end(1)
        if match[2]:
            return
