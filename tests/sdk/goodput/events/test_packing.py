"""Packed events are small, come back unchanged, and other items are rejected."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode
from mldiagnostics.goodput.events.packing import ClockStep, apply_clock_steps, pack, unpack
from support.goodput.packed_entries import packed_entries
from support.records import json_values

if TYPE_CHECKING:
    from mldiagnostics.goodput.events.packing import Entry

T = 1_790_000_000_000_000


@given(st.lists(packed_entries(), max_size=12))
def test_events_in_any_order_come_back_unchanged(given: list[Entry]) -> None:
    assert unpack(json.loads(json.dumps(pack(given)))) == given


@given(st.lists(st.lists(packed_entries(), max_size=6), max_size=3))
def test_packed_lists_can_be_joined(lists: list[list[Entry]]) -> None:
    assert unpack([item for each in lists for item in pack(each)]) == [entry for each in lists for entry in each]


@given(st.lists(json_values()))
def test_items_of_others_are_rejected_or_come_back(items: list[object]) -> None:
    with suppress(ValueError):
        known = unpack(items)
        assert unpack(pack(known)) == known


@pytest.mark.parametrize(
    "item",
    [
        *(10**16, True, 1.0, None, "x", [], [0], [0, 2, -1], [0, 2, 2**31], [0, 99], [0, True], [0, [2]]),
        *([0, 24, [1, 2]], [0, 25, [0, 1, "disk"]], [0, 22, ""], [0, 22, "x" * 601], [0, 2, 1, -1, ""]),
        *([0, 2, 1, 0, 5], [0, 4, 1], {"clock": 0}, {"clock": 1, "x": 1}, {}, [0, 2, 1, 0]),
    ],
)
def test_an_invalid_item_is_rejected(item: object) -> None:
    with pytest.raises(ValueError, match=r"^events: item 1 is not a packed event: "):
        unpack([[T, 2, 5, 0, ""], item])


def test_a_clock_step_moves_the_earlier_events_only() -> None:
    saved = Event(T, EventCode.SAVED, CheckpointEvent(T + 5, 1))
    alive = Event(T, EventCode.ALIVE)
    recorded: list[Entry] = [saved, ClockStep(-100), alive, ClockStep(10), alive]
    assert apply_clock_steps(recorded) == [
        Event(T - 90, EventCode.SAVED, CheckpointEvent(T - 85, 1)),
        Event(T + 10, EventCode.ALIVE),
        alive,
    ]


@pytest.mark.parametrize("codes", [(EventCode.STEP_START,), (EventCode.STEP_START, EventCode.STEP_END)])
def test_a_hundred_steps_a_second_are_less_than_a_kilobyte_a_second(codes: tuple[EventCode, ...]) -> None:
    dice, t, run = Random(0), T, "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"
    events = []
    for step in range(1000):  # of ten seconds
        for code in codes:
            t += int(dice.gauss(10_000, 1_000) / len(codes))
            events.append(Event(t, code, step, 0, run))
    packed = zlib.compress(json.dumps(pack(events), separators=(",", ":")).encode())
    assert len(packed) < 10 * 1000 * 0.6, len(packed)  # the rest is for everything else in a report
