"""Events are reported in order until they are persisted, in bounded memory."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics.control_plane.event_backlog import BLOCK, EventBacklog
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.events.packing import MAX_BYTES, unpack

T = 1_790_000_000_000_000


def step(number: int) -> Event:
    return Event(T + 10_000 * number + number % 7, EventCode.STEP_START, number, 0, "run")


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 2 * BLOCK), st.floats(0, 1)), max_size=4),
    st.sampled_from([0, 700, 10**6]),
)
def test_a_server_that_takes_what_it_gets_misses_nothing(rounds: list[tuple[int, float]], kept_bytes: int) -> None:
    backlog, stored, made = EventBacklog(kept_bytes=kept_bytes), 0, 0
    for added, share in rounds:
        for _ in range(added):
            backlog.add(step(made))
            made += 1
        first, items = backlog.unpersisted()
        events = unpack(json.loads(f"[{items}]"))
        assert first <= stored
        assert events == [step(number) for number in range(first, made)]
        stored = max(stored, round(made * share))
        backlog.note_persisted(stored)
    assert backlog.count == made
    backlog.note_persisted(made)
    assert backlog.unpersisted() == (made, "")
    backlog.close()


def test_events_are_reported_again_to_a_server_that_lost_them() -> None:
    backlog = EventBacklog()
    for number in range(3 * BLOCK + 5):
        backlog.add(step(number))
    backlog.note_persisted(3 * BLOCK + 5)
    backlog.note_persisted(BLOCK + 1)
    first, items = backlog.unpersisted()
    assert (first, len(json.loads(f"[{items}]"))) == (BLOCK, 2 * BLOCK + 5)


@given(st.integers(0, 3 * BLOCK), st.integers(0, 3 * BLOCK), st.integers(0, 3 * BLOCK))
def test_a_full_server_gets_no_more_unless_it_loses_what_it_had(made: int, persisted: int, left: int) -> None:
    backlog = EventBacklog()
    for number in range(made):
        backlog.add(step(number))
    persisted, left = min(made, persisted), min(made, persisted, left)
    backlog.note_persisted(persisted)
    backlog.stop()
    assert backlog.unpersisted() == (persisted, "")
    backlog.note_persisted(left)
    first, items = backlog.unpersisted()
    events = unpack(json.loads(f"[{items}]"))
    assert first <= left
    assert events == [step(number) for number in range(first, first + len(events))]
    assert first + len(events) >= persisted


def test_a_full_server_frees_the_file_and_the_memory_of_events_that_it_does_not_take() -> None:
    backlog = EventBacklog(kept_bytes=1)
    for number in range(4 * BLOCK):
        backlog.add(step(number))
    assert backlog._spool is not None
    backlog.note_persisted(0)
    backlog.stop()
    assert (backlog._spool, backlog._bytes) == (None, 0)
    assert backlog.unpersisted() == (0, "")


def test_a_report_has_at_most_half_a_mebibyte_and_the_next_one_goes_on() -> None:
    backlog, made = EventBacklog(), 40_000
    for number in range(made):
        backlog.add(Event(T + number**2, EventCode.CUSTOM_START, f"TYPE {number}", 0, "run"))
    stored = reports = 0
    while stored < made:
        first, items = backlog.unpersisted()
        assert first <= stored
        assert len(items) + 2 <= MAX_BYTES
        stored = first + len(json.loads(f"[{items}]"))
        backlog.note_persisted(stored)
        reports += 1
    assert reports > 1


def test_ten_minutes_at_a_hundred_steps_a_second_need_300_kilobytes() -> None:
    backlog = EventBacklog(kept_bytes=300_000)
    for number in range(60_000):
        backlog.add(step(number))
    first, _ = backlog.unpersisted()
    assert first == 0
    assert backlog._spool is None
