"""Steps that were executed one after the other, divided as ml-goodput-measurement 0.2.3 does; pure.

Events of a type of its own are known by the whole log and count only where one step contains them.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.goodput.buckets import BadputType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mldiagnostics.goodput.answer import Unproductive

__all__ = ["Custom", "Segment", "custom_events", "segment"]

WASTED = BadputType.WASTED_PROGRESS_FROM_DISRUPTION
CUSTOM = BadputType.CUSTOM_BADPUT_EVENTS
STARTUP = BadputType.PROGRAM_STARTUP


class Custom(NamedTuple):
    """An event of a type of its own."""

    start: float
    end: float
    kind: str


class Segment(NamedTuple):
    """Productive seconds, the others by bucket, and the last step that was closed (0 without one)."""

    productive: float
    unproductive: Unproductive
    max_step: int


def custom_events(entries: Iterable[Mapping[str, Any]]) -> list[Custom]:
    """Return the events that have a start and a later end, by their start.

    Raises KeyError where a payload does not tell the type.
    """
    found = []
    begun: dict[str, float] = {}
    for entry in entries:
        if "custom_badput_event_start_time" in entry:
            begun[entry["custom_badput_event_type"].upper()] = entry["custom_badput_event_start_time"]
        elif "custom_badput_event_end_time" in entry:
            kind, end = entry["custom_badput_event_type"].upper(), entry["custom_badput_event_end_time"]
            start = begun.pop(kind, None)
            if start is not None and start < end:
                found.append(Custom(start, end, kind))
    return sorted(found)


def segment(steps: Mapping[int, float], kept: int, events: Sequence[Custom]) -> Segment:
    """Divide the time between the first and the last start of a step; those up to `kept` survive."""
    if kept == 0:
        return Segment(0.0, {}, 0)
    wasted, max_step = 0.0, 0
    durations: list[float] = []
    first: float | None = None
    custom: dict[str, float] = {}
    lowest = min(steps)
    for (step, start), (following, end) in pairwise(steps.items()):
        if following > kept:
            wasted += end - start
        elif following - 1 == step:
            inside = [event for event in _beginning_in(events, start, end) if event.end <= end]
            for event in inside:
                custom[event.kind] = custom.get(event.kind, 0.0) + event.end - event.start
            duration = max(0, end - start - sum(event.end - event.start for event in inside))
            if step == lowest:
                first = duration
            else:
                durations.append(duration)
            max_step = step
    if first is None and not durations:
        return Segment(0.0, {WASTED: wasted}, 0)
    startup = max(0, first - sum(durations) / len(durations)) if first is not None and durations else 0.0
    productive = (first or 0.0) + sum(durations) - startup
    return Segment(productive, {STARTUP: startup, WASTED: wasted, CUSTOM: custom}, max_step)


def _beginning_in(events: Sequence[Custom], start: float, end: float) -> Sequence[Custom]:
    return events[bisect_left(events, (start,)) : bisect_left(events, (end,))]
