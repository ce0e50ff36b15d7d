"""Goodput events in the form in which they are reported; pure, used by both ends.

`pack` returns one JSON item for each event, in order:

* `<delta>`: the expected event: the code that followed the last time, with the next step or the same argument;
* `[<delta>, <code>]`, `[<delta>, <code>, <argument>]`: another event, of the last event's rank and run;
* `[<delta>, <code>, <argument>, <rank>, <run>]`: an event of another rank or run;
* `{"clock": <microseconds>}`: a clock step.

A delta is microseconds since the last event, since 1970 for the first one. After gzip an expected event needs two to
three bytes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mldiagnostics.goodput.events import CheckpointEvent, Event, EventCode, SliceCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.goodput.events import Arg

__all__ = ["MAX_BYTES", "ClockStep", "Entry", "apply_clock_steps", "pack", "unpack"]

MAX_BYTES = 512 * 1024
"""Most bytes of JSON of the events in one report."""

_END_OF_TIME_US = 7_258_118_400_000_000
"""The year 2200, as in `payload`; a checkpoint may start before 1970, as far as its log entry says."""

_MOST_US = 10**16
"""Limit of a clock step and of the duration of a checkpoint, as in `clocks`."""

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


def pack(entries: Iterable[Entry], *, max_bytes: int = MAX_BYTES) -> list[Any]:
    """Return the JSON items of the entries, or of the first ones that fit.

    Args:
        entries: Events and clock steps, in the order in which the process recorded them.
        max_bytes: Most bytes of the items as JSON without spaces.
    """
    items: list[Any] = []
    pattern = _Pattern()
    size = 1
    for entry in entries:
        item = pattern.item(entry) if isinstance(entry, Event) else {"clock": entry.by}
        size += 1 + (len(str(item)) if type(item) is int else len(json.dumps(item, separators=(",", ":"))))
        if size > max_bytes:
            break
        items.append(item)
    return items


def unpack(items: Sequence[Any]) -> list[Entry]:
    """Return the entries of JSON items; `unpack(pack(entries)) == entries`.

    Raises `ValueError` for items that `pack` does not return.
    """
    entries: list[Entry] = []
    pattern = _Pattern()
    for number, item in enumerate(items):
        entry = _clock_step(item) if isinstance(item, dict) else pattern.event(item)
        if entry is None:
            raise ValueError(f"events: item {number} is not a packed event: {repr(item)[:80]}")
        entries.append(entry)
    return entries


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


class _Pattern:
    """The events so far, from which both ends expect the next one."""

    def __init__(self) -> None:
        self._last = Event(0, EventCode.ALIVE)
        self._followers: dict[EventCode, EventCode] = {}
        self._arguments: dict[EventCode, Arg] = {}

    def item(self, event: Event) -> Any:
        """Return the item of the next event."""
        last, delta = self._last, event.t - self._last.t
        is_expected = event == self._expected(event.t)
        self._learn(event)
        if is_expected:
            return delta
        if event.rank != last.rank or event.run != last.run:
            return [delta, int(event.code), _packed_argument(event), event.rank, event.run]
        return [delta, int(event.code)] if event.arg == 0 else [delta, int(event.code), _packed_argument(event)]

    def event(self, item: Any) -> Event | None:
        """Return the event of the next item, None if it is not valid."""
        if type(item) is int:
            event = self._expected(self._last.t + item)
        else:
            event = self._unexpected(item) if isinstance(item, list) and item and type(item[0]) is int else None
        if event is None or abs(event.t) > _END_OF_TIME_US:
            return None
        self._learn(event)
        return event

    def _expected(self, t: int) -> Event | None:
        code = self._followers.get(self._last.code, self._last.code)
        arg = self._arguments.get(code)
        if code in _STEPS and isinstance(arg, int):
            arg = arg + 1 if arg < _MAX_NUMBER else None
        return None if arg is None else self._last._replace(t=t, code=code, arg=arg)

    def _learn(self, event: Event) -> None:
        self._followers[self._last.code] = event.code
        self._arguments[event.code] = event.arg
        self._last = event

    def _unexpected(self, item: list[Any]) -> Event | None:
        t = self._last.t + item[0]
        rank, run = item[3:] if len(item) == 5 else (self._last.rank, self._last.run)
        code = _CODES.get(item[1]) if len(item) in {2, 3, 5} and type(item[1]) is int else None
        if code is None or not (_is_number(rank) and isinstance(run, str) and len(run) <= _MAX_TEXT):
            return None
        arg = _argument(code, item[2] if len(item) > 2 else 0, t)
        return None if arg is None else Event(t, code, arg, rank, run)


def _clock_step(item: dict[Any, Any]) -> ClockStep | None:
    step = item.get("clock") if len(item) == 1 else None
    return ClockStep(step) if type(step) is int and 0 < abs(step) < _MOST_US else None


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
    valid = type(took) is int and abs(took) < _MOST_US and _is_step(step) and isinstance(tier, str) and tier in _TIERS
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
