"""Planes, lines and events of an XSpace file, out of its wire format.

Field numbers: `tsl/profiler/protobuf/xplane.proto`. Objects of all events would take ten times the size of the file;
so a line is decoded event by event, and statistics of an event only where the caller needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics.capture.wire import WireError, fields

if TYPE_CHECKING:
    from collections.abc import Iterator


Statistics = dict[str, int | float | str]
Event = tuple[int, int, int, int, int]
"""Number of its name, start and duration in picoseconds, and where its statistics start and end in the line."""

PS_PER_NS = 1000
_TOO_LONG = 70
_FIXED = {1: 8, 5: 4}
_EVENT = 0x22
_NAME, _OFFSET, _DURATION = 0x08, 0x10, 0x18
_NUMBERS = frozenset({_NAME, _OFFSET, _DURATION})


@dataclass(slots=True)
class Line:
    """A row of events, usually a thread or a stream of a device."""

    name: str
    start_ps: int
    data: bytes


@dataclass(slots=True)
class Plane:
    """A host or a device."""

    name: str
    lines: list[memoryview] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """Names of events by number."""
    details: dict[int, memoryview] = field(default_factory=dict)
    """Metadata of all events of a number, such as an operation's category."""
    statistic_names: dict[int, str] = field(default_factory=dict)
    totals: list[memoryview] = field(default_factory=list)
    """Statistics of the plane itself."""


def planes(trace: memoryview) -> Iterator[Plane]:
    """Yield the planes of a trace, without their events.

    Raises:
        WireError: The bytes are not a trace.
    """
    for number, value in fields(trace):
        if number == 1:
            yield _plane(_bytes(value))


def line_of(data: memoryview) -> Line:
    """Return a line without its events; its name and start stand before them."""
    name, start_ns = "", 0
    for number, value in fields(data):
        if number == 2:
            name = _text(value)
        elif number == 3 and isinstance(value, int):
            start_ns = _signed(value)
        elif number == 4:
            break
    return Line(name, start_ns * PS_PER_NS, bytes(data))


def events(line: Line) -> Iterator[Event]:  # noqa: C901, PLR0912 - one loop, for speed
    """Yield the events of a line.

    Most of the time of reading goes into this function, so it decodes both levels in one loop, without calls.

    Raises:
        WireError: The bytes are not a line.
    """
    data, line_ps, at = line.data, line.start_ps, 0
    last = len(data)
    try:
        while at < last:
            tag, at = data[at], at + 1
            kind = tag & 7
            length = shift = 0
            if kind in _FIXED:
                at += _FIXED[kind]
                continue
            while (byte := data[at]) >= 0x80:
                length |= (byte & 0x7F) << shift
                shift += 7
                at += 1
            length |= byte << shift
            at += 1
            if kind == 0:
                continue
            end = at + length
            if kind != 2 or shift > _TOO_LONG or end > last:
                raise WireError("a line that is cut or no message")
            if tag != _EVENT:
                at = end
                continue
            name = offset = duration = 0
            while at < end:
                tag = data[at]
                if tag not in _NUMBERS:  # the statistics are last
                    break
                at += 1
                value = shift = 0
                while (byte := data[at]) >= 0x80:
                    value |= (byte & 0x7F) << shift
                    shift += 7
                    at += 1
                value |= byte << shift
                at += 1
                if tag == _NAME:
                    name = value
                elif tag == _OFFSET:
                    offset = value
                else:
                    duration = value
            yield name, line_ps + offset, duration, at, end
            at = end
    except IndexError:
        raise WireError("a line that is cut") from None


def statistics(line: Line, event: Event, plane: Plane) -> Statistics:
    """Return the statistics of an event by name."""
    values: Statistics = {}
    for number, value in fields(memoryview(line.data)[event[3] : event[4]]):
        if number == 4:
            _read_statistic(_bytes(value), plane, values)
    return values


def details(plane: Plane, number: int) -> Statistics:
    """Return the metadata of all events of a number."""
    values: Statistics = {}
    for field_number, value in fields(plane.details.get(number, memoryview(b""))):
        if field_number == 5:
            _read_statistic(_bytes(value), plane, values)
    return values


def totals(plane: Plane) -> Statistics:
    """Return the statistics of the plane itself, such as the kind of the device."""
    values: Statistics = {}
    for data in plane.totals:
        _read_statistic(data, plane, values)
    return values


def _plane(data: memoryview) -> Plane:
    plane = Plane("")
    for number, value in fields(data):
        if number == 2:
            plane.name = _text(value)
        elif number == 3:
            plane.lines.append(_bytes(value))
        elif number == 4:
            key, content = _entry(_bytes(value))
            plane.names[key], plane.details[key] = _name(content), content
        elif number == 5:
            key, content = _entry(_bytes(value))
            plane.statistic_names[key] = _name(content)
        elif number == 6:
            plane.totals.append(_bytes(value))
    return plane


def _entry(data: memoryview) -> tuple[int, memoryview]:
    key, content = 0, memoryview(b"")
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2:
            content = _bytes(value)
    return key, content


def _name(data: memoryview) -> str:
    """Return the name in metadata; the one to show, if it has two."""
    names = {number: value for number, value in fields(data) if number in {2, 4}}
    return _text(names.get(4) or names.get(2, memoryview(b"")))


def _read_statistic(data: memoryview, plane: Plane, values: Statistics) -> None:
    name = ""
    value: int | float | str | None = None
    for number, raw in fields(data):
        if number == 1 and isinstance(raw, int):
            name = plane.statistic_names.get(raw, "")
        elif number in {3, 4} and isinstance(raw, int):
            value = _signed(raw) if number == 4 else raw
        elif number == 7 and isinstance(raw, int):
            value = plane.statistic_names.get(raw, "")
        elif number == 5:
            value = _text(raw)
        elif number == 2 and not isinstance(raw, int):
            value = _double(raw)
    if name:
        values[name] = 0 if value is None else value


def _double(raw: memoryview) -> float:
    import struct  # noqa: PLC0415 - rare

    if len(raw) != 8:
        raise WireError(f"{len(raw)} bytes where a double is expected")
    return float(struct.unpack("<d", raw)[0])


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise WireError("an integer where a message is expected")
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_bytes(value)).decode("utf-8", "replace")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
