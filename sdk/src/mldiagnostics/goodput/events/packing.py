"""Goodput events in the form in which they are reported; pure, used by both ends.

`pack` returns one JSON item for each event, in order:

* `<delta>`: the expected event: the code that followed the last time, with the next step or the same argument;
* `[<delta>, <code>]`, `[<delta>, <code>, <argument>]`: another event, of the last event's rank and run;
* `[<time>, <code>, <argument>, <rank>, <run>]`: an event independent of all before it; the first one is;
* `{"clock": <microseconds>}`: a clock step.

A delta is microseconds since the last event, a time those since 1970. Packed lists can be joined. After gzip an
expected event needs two to three bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mldiagnostics.goodput.events.clocks import MOST_US
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts
from mldiagnostics.text.timestamps import END_OF_TIME_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.goodput.events.event import Arg


MAX_BYTES = 512 * 1024
"""Most bytes of JSON of the events in one report."""

END_OF_TIME_US = int(END_OF_TIME_S) * 1_000_000
"""A checkpoint may start before 1970, as far as its log entry says."""


_MAX_NUMBER = 2**31 - 1
_MAX_TEXT = 600
"""Upper-case text of 200 characters can have three times as many."""

_TIERS = frozenset({"", "local", "persistent"})
_STEPS = frozenset({EventCode.STEP_START, EventCode.STEP_END})
_CHECKPOINTS = frozenset({EventCode.SAVE_START, EventCode.SAVE_END, EventCode.RESTORE_START, EventCode.RESTORE_END})
_TEXTS = frozenset({EventCode.CUSTOM_START, EventCode.CUSTOM_END, EventCode.CAUSE})
_WHOLE_CHECKPOINTS = frozenset({EventCode.SAVED, EventCode.RESTORED})


class ClockStep(NamedTuple):
    """A change of the host's clock, by which all earlier events of the process move."""

    by: int
    """Microseconds; positive is forwards."""


Entry: TypeAlias = "Event | ClockStep"
"""One item of the events that a process reports."""


def pack(entries: Iterable[Entry]) -> list[Any]:
    """Return the JSON items of entries, in the order of their recording."""
    packer = Packer()
    return [packer.pack(entry) for entry in entries]


def unpack(items: Sequence[Any]) -> list[Entry]:
    """Return the entries of JSON items; `unpack(pack(entries)) == entries`.

    Raises `ValueError` for items that `pack` does not return.
    """
    return Unpacker().unpack(items)


def apply_clock_steps(entries: Sequence[Entry]) -> list[Event]:
    """Return the events of one process, moved by the clock steps that follow them."""
    events: list[Event] = []
    shift = 0
    for entry in reversed(entries):
        if isinstance(entry, ClockStep):
            shift += entry.by
        else:
            events.append(_moved(entry, shift) if shift else entry)
    events.reverse()
    return events


class Packer:
    """Packs entries one by one; its first event is independent of all before it."""

    def __init__(self) -> None:
        self._pattern = _Pattern()

    def pack(self, entry: Entry) -> Any:
        """Return the item of the next entry."""
        return self._pattern.item(entry) if isinstance(entry, Event) else {"clock": entry.by}


class Unpacker:
    """Unpacks the items of one list piece by piece."""

    def __init__(self) -> None:
        self._pattern = _Pattern()
        self._count = 0

    def unpack(self, items: Iterable[Any]) -> list[Entry]:
        """Return the entries of the next items.

        Raises `ValueError` for items that `pack` does not return.
        """
        entries: list[Entry] = []
        for number, item in enumerate(items, self._count):
            entry = _clock_step(item) if isinstance(item, dict) else self._pattern.read(item)
            if entry is None:
                raise ValueError(f"events: item {number} is not a packed event: {repr(item)[:80]}")
            entries.append(entry)
        self._count += len(entries)
        return entries


class _Pattern:
    """The events so far, from which both ends expect the next one."""

    def __init__(self) -> None:
        self._last: Event | None = None
        self._followers: dict[EventCode, EventCode] = {}
        self._arguments: dict[EventCode, Arg] = {}

    def item(self, event: Event) -> Any:
        """Return the item of the next event."""
        last = self._last
        if last is None or event.rank != last.rank or event.run != last.run:
            item: Any = [event.t, int(event.code), _packed_argument(event), event.rank, event.run]
            self._begin(event)
            return item
        expected = self._expected(last)
        self._learn(last, event)
        delta = event.t - last.t
        if (event.code, event.arg) == expected:
            return delta
        return [delta, int(event.code)] if event.arg == 0 else [delta, int(event.code), _packed_argument(event)]

    def read(self, item: Any) -> Event | None:
        """Return the event of the next item, None if it is not valid."""
        last = self._last
        if isinstance(item, list) and len(item) == 5:
            event = _event(*item)
            if event is not None:
                self._begin(event)
            return event
        if last is None:
            return None
        event = self._expected_event(last, last.t + item) if type(item) is int else _event_after(last, item)
        if event is not None:
            self._learn(last, event)
        return event

    def _begin(self, event: Event) -> None:
        self._followers, self._arguments = {}, {event.code: event.arg}
        self._last = event

    def _learn(self, last: Event, event: Event) -> None:
        self._followers[last.code] = event.code
        self._arguments[event.code] = event.arg
        self._last = event

    def _expected_event(self, last: Event, t: int) -> Event | None:
        code, arg = self._expected(last)
        return None if arg is None or abs(t) > END_OF_TIME_US else Event(t, code, arg, last.rank, last.run)

    def _expected(self, last: Event) -> tuple[EventCode, Arg | None]:
        """Return code and argument of the expected event; no argument if none is."""
        code = self._followers.get(last.code, last.code)
        arg = self._arguments.get(code)
        if code in _STEPS and isinstance(arg, int):
            arg = arg + 1 if arg < _MAX_NUMBER else None
        return code, arg


def _event_after(last: Event, item: Any) -> Event | None:
    if not isinstance(item, list) or len(item) not in {2, 3} or type(item[0]) is not int:
        return None
    return _event(last.t + item[0], item[1], item[2] if len(item) == 3 else 0, last.rank, last.run)


def _event(t: Any, code: Any, packed: Any, rank: Any, run: Any) -> Event | None:
    """Return the event of unpacked values, None if one is not valid."""
    known = _CODES.get(code) if type(code) is int else None
    if known is None or type(t) is not int or abs(t) > END_OF_TIME_US or not _is_number(rank):
        return None
    if not isinstance(run, str) or len(run) > _MAX_TEXT:
        return None
    arg = _argument(known, packed, t)
    return None if arg is None else Event(t, known, arg, rank, run)


def _clock_step(item: dict[Any, Any]) -> ClockStep | None:
    step = item.get("clock") if len(item) == 1 else None
    return ClockStep(step) if type(step) is int and 0 < abs(step) < MOST_US else None


def _packed_argument(event: Event) -> Any:
    arg = event.arg
    if isinstance(arg, CheckpointEvent):
        return [arg.until - event.t, arg.step, arg.tier]
    return list(arg) if isinstance(arg, SliceCounts) else arg


def _argument(code: EventCode, packed: Any, t: int) -> Arg | None:
    """Return the argument of an event, None if it is not one of this code."""
    if code in _TEXTS:
        return packed if isinstance(packed, str) and 0 < len(packed) <= _MAX_TEXT else None
    if code in _WHOLE_CHECKPOINTS:
        return _checkpoint(packed, t)
    if code is EventCode.SLICES:
        valid = isinstance(packed, list) and len(packed) == 3 and all(map(_is_number, packed))
        return SliceCounts(*packed) if valid else None
    if code in _STEPS:
        return packed if _is_number(packed) else None
    if code in _CHECKPOINTS:
        return packed if _is_step(packed) else None
    return 0 if type(packed) is int and packed == 0 else None


def _checkpoint(packed: Any, t: int) -> CheckpointEvent | None:
    if not (isinstance(packed, list) and len(packed) == 3):
        return None
    took, step, tier = packed
    valid = type(took) is int and abs(took) < MOST_US and _is_step(step) and isinstance(tier, str) and tier in _TIERS
    return CheckpointEvent(t + took, step, tier) if valid else None


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_NUMBER


def _is_step(value: object) -> bool:
    return value == -1 if type(value) is int and value < 0 else _is_number(value)


def _moved(event: Event, by: int) -> Event:
    arg = event.arg
    if isinstance(arg, CheckpointEvent):
        arg = arg._replace(until=arg.until + by)
    return event._replace(t=event.t + by, arg=arg)


_CODES: dict[int, EventCode] = {int(code): code for code in EventCode}
