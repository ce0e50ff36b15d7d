"""Entries of every kind that a process reports."""

from __future__ import annotations

from hypothesis import strategies as st
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts
from mldiagnostics.goodput.events.packing import ClockStep, Entry

T = 1_790_000_000_000_000
NUMBERS = st.integers(0, 2**31 - 1)
STEPS = st.integers(-1, 2**31 - 1)
MOMENTS = st.integers(0, 7_258_118_400_000_000)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
TIERS = st.sampled_from(["", "local", "persistent"])
ARGUMENTS: dict[EventCode, st.SearchStrategy[object]] = {
    **dict.fromkeys([EventCode.STEP_START, EventCode.STEP_END], NUMBERS),
    **dict.fromkeys([EventCode.SAVE_START, EventCode.SAVE_END, EventCode.RESTORE_START, EventCode.RESTORE_END], STEPS),
    **dict.fromkeys([EventCode.CUSTOM_START, EventCode.CUSTOM_END, EventCode.CAUSE], TEXTS.map(str.upper)),
    **dict.fromkeys([EventCode.SAVED, EventCode.RESTORED], st.builds(CheckpointEvent, MOMENTS, STEPS, TIERS)),
    EventCode.SLICES: st.builds(SliceCounts, NUMBERS, NUMBERS, NUMBERS),
}


@st.composite
def packed_entries(draw: st.DrawFn) -> Entry:
    if draw(st.integers(0, 9)) == 0:
        return ClockStep(draw(st.integers(1, 10**15)) * draw(st.sampled_from([1, -1])))
    code = draw(st.sampled_from(list(EventCode)))
    arg = draw(ARGUMENTS.get(code, st.just(0)))
    rank, run = draw(st.sampled_from([(0, ""), (0, "r"), (3, "r")]))
    return Event(draw(MOMENTS | st.integers(T, T + 9)), code, arg, rank, run)  # type: ignore[arg-type]
