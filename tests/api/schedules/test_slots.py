from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.slots import (
    LATEST_S,
    capture_name,
    due_slot,
    jitter_offset,
    next_start,
    slot_cause,
    trigger_cause,
)
from mldiagnostics_api.schedules.timing import Cron, Every, Timing

NOW = 1_790_000_000.0
TIMINGS: st.SearchStrategy[Timing] = st.one_of(
    st.integers(60, 20_000).map(lambda period: Every(period, NOW - 12_345)),
    st.sampled_from(["*/5 * * * *", "30 2 * * *", "* * * * *"]).map(lambda text: Cron.parse(text, "Europe/Berlin")),
)
CLOCKS = st.lists(st.floats(-4000, 4000), min_size=1, max_size=60)


@given(TIMINGS, CLOCKS, st.floats(0, 900))
def test_a_slot_is_due_once_whatever_the_clock_does(timing: Timing, jumps: list[float], offset_s: float) -> None:
    """The clock stands, runs, jumps ahead and back; a leader takes over with the record of the one before."""
    done: list[float] = []
    now = NOW
    for jump in jumps:
        now += jump
        slot = due_slot(timing, now, offset_s=offset_s, done=done)
        if slot is not None:
            assert slot not in done
            assert 0 <= now - (slot + offset_s) <= LATEST_S
            done.append(slot)


@given(TIMINGS, st.floats(0, 86_400), st.floats(0, 900))
def test_what_is_due_was_next(timing: Timing, later_s: float, offset_s: float) -> None:
    now = NOW + later_s
    start = next_start(timing, now, offset_s=offset_s)
    assert start is not None
    assert start > now
    assert due_slot(timing, start, offset_s=offset_s) is not None


def test_missed_slots_are_not_made_up() -> None:
    timing = Every(60, NOW)
    assert due_slot(timing, NOW + 3601) == NOW + 3600
    assert due_slot(timing, NOW + 3601, done=[NOW + 3600]) is None
    assert due_slot(Every(3600, NOW), NOW + 3600 + LATEST_S + 1) is None


@given(st.text(min_size=1), st.text(min_size=1), st.floats(0, 10_000))
def test_the_jitter_of_a_target_is_fixed_and_bounded(uid: str, target: str, jitter_s: float) -> None:
    offset_s = jitter_offset(uid, target, jitter_s)
    assert 0 <= offset_s <= jitter_s
    assert offset_s == jitter_offset(uid, target, jitter_s)


def test_the_name_of_a_capture_is_made_of_schedule_target_and_cause() -> None:
    name = capture_name("nightly", "uid-1", target="run-a", cause=slot_cause(NOW))
    assert name == capture_name("nightly", "uid-1", target="run-a", cause=slot_cause(NOW))
    others = {
        capture_name("nightly", "uid-2", target="run-a", cause=slot_cause(NOW)),
        capture_name("nightly", "uid-1", target="run-b", cause=slot_cause(NOW)),
        capture_name("nightly", "uid-1", target="run-a", cause=slot_cause(NOW + 60)),
        capture_name("nightly", "uid-1", target="run-a", cause=trigger_cause("Hanging", NOW)),
    }
    assert len({name, *others}) == 5
    assert len(capture_name("x" * 253, "u", target="r", cause="c")) <= 63
    assert capture_name("a" * 39 + "-b", "u", target="r", cause="c").count("--") == 0
