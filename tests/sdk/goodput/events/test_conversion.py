"""Payloads of the peer, of Orbax and of ours become events; other payloads become a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.conversion import micros, parse, payload_of
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts
from support.records import Hostile, json_values

T = 1_735_689_600.0
US = 1_735_689_600_000_000
SAVE = {
    "step": 3,
    "event_type": "save",
    "directory": "gs://bucket/checkpoints",
    "reached_preemption": False,
    "preemption_received_at": None,
    "time_between_consecutive_saves_sec": None,
    "checkpoint_manager_blocking_start_time": T,
    "checkpoint_manager_blocking_duration_secs": 2.5,
    "job_name": "job",
}
RESTORE = {
    "step": 3,
    "event_type": "restore",
    "directory": "/local",
    "checkpoint_manager_start_time": T,
    "checkpoint_manager_duration_secs": 4,
    "job_name": "job",
}


@pytest.mark.parametrize(
    ("fields", "code", "arg"),
    [
        ({"job_start_time": T}, EventCode.JOB_START, 0),
        ({"job_end_time": T}, EventCode.JOB_END, 0),
        ({"step_count": 3, "step_start_time": T}, EventCode.STEP_START, 3),
        ({"step_count": 3.0, "step_start_time": T}, EventCode.STEP_START, 3),
        ({"step_start_time": T, "step_count": 0}, EventCode.STEP_START, 0),
        ({"step_count": 3, "step_end_time": T}, EventCode.STEP_END, 3),
        ({"tpu_init_start_time": T}, EventCode.TPU_INIT_START, 0),
        ({"tpu_init_end_time": T}, EventCode.TPU_INIT_END, 0),
        ({"training_prep_start_time": T}, EventCode.PREP_START, 0),
        ({"training_prep_end_time": T}, EventCode.PREP_END, 0),
        ({"data_loading_start_time": T}, EventCode.LOAD_START, 0),
        ({"data_loading_end_time": T}, EventCode.LOAD_END, 0),
        ({"custom_badput_event_type": "eval", "custom_badput_event_start_time": T}, EventCode.CUSTOM_START, "EVAL"),
        ({"custom_badput_event_type": "eval", "custom_badput_event_end_time": T}, EventCode.CUSTOM_END, "EVAL"),
        ({"elastic_wait_event_type": "elastic_SCALE_UP", "elastic_wait_start_time": T}, EventCode.SCALE_UP_START, 0),
        ({"elastic_wait_event_type": "elastic_slice_down", "elastic_wait_end_time": T}, EventCode.SLICE_DOWN_END, 0),
        ({"elastic_reinit_start_time": T}, EventCode.REINIT_START, 0),
        ({"elastic_reinit_end_time": T}, EventCode.REINIT_END, 0),
        (
            {"active_slices": 1, "total_slices": 4.0, "available_slices": 2, "elastic_slice_counts_timestamp": T},
            EventCode.SLICES,
            SliceCounts(1, 4, 2),
        ),
        ({"program_startup_start_time": T}, EventCode.STARTUP_START, 0),
        ({"checkpoint_save_start_time": T, "checkpoint_step": 7}, EventCode.SAVE_START, 7),
        ({"checkpoint_restore_end_time": T}, EventCode.RESTORE_END, -1),
        ({"disruption_cause": "preemption", "disruption_time": T}, EventCode.CAUSE, "preemption"),
    ],
)
def test_each_kind_of_entry_is_understood(fields: dict[str, Any], code: EventCode, arg: object) -> None:
    assert parse({"job_name": "job", **fields}) == (Event(US, code, arg),)  # type: ignore[arg-type]


def test_what_an_entry_says_of_its_process_wins() -> None:
    fields = {"job_start_time": T, "rank": 2.0, "run_id": "abc"}
    assert parse(fields, rank=5, run="def") == (Event(US, EventCode.JOB_START, 0, 2, "abc"),)
    assert parse({"job_start_time": T}, rank=5, run="def") == (Event(US, EventCode.JOB_START, 0, 5, "def"),)


def test_orbax_tells_saves_and_restores_with_their_ends() -> None:
    assert parse(SAVE) == (Event(US, EventCode.SAVED, CheckpointEvent(US + 2_500_000, 3, "persistent")),)
    assert parse({**SAVE, "directory": None, "step": None}) == (
        Event(US, EventCode.SAVED, CheckpointEvent(US + 2_500_000)),
    )
    for kind in ("restore", "emergency_restore"):
        assert parse({**RESTORE, "event_type": kind}) == (
            Event(US, EventCode.RESTORED, CheckpointEvent(US + 4_000_000, 3, "local")),
        )


def test_a_save_without_its_start_ends_when_it_was_logged() -> None:
    fields = {**SAVE, "checkpoint_manager_blocking_start_time": None}
    assert parse(fields, logged=T + 2.5) == parse(SAVE)
    assert parse(fields) == "checkpoint without times"
    assert parse({**SAVE, "checkpoint_manager_blocking_duration_secs": None}) == "checkpoint without times"
    assert parse({**SAVE, "checkpoint_manager_blocking_duration_secs": -1.0}) == "bad duration"


def test_a_save_for_a_preemption_tells_the_cause_too() -> None:
    fields = {**SAVE, "reached_preemption": True}
    assert parse(fields) == (*parse(SAVE), Event(US, EventCode.CAUSE, "preemption"))
    assert parse({**fields, "preemption_received_at": T - 1})[1] == Event(US - 1_000_000, EventCode.CAUSE, "preemption")


@pytest.mark.parametrize(
    "bad", [None, True, "1735689600", float("nan"), float("inf"), -1.0, T * 1000, [T], {}, 10**400]
)
def test_no_moment_is_a_reason(bad: object) -> None:
    assert parse({"job_start_time": bad}) == "bad time"
    assert micros(bad) is None


@pytest.mark.parametrize("bad", [None, True, "3", float("nan"), -1, 3.5, 2**31, [3]])
def test_no_step_is_a_reason(bad: object) -> None:
    assert parse({"step_count": bad, "step_start_time": T}) == "bad step"


def test_the_rest_has_reasons_too() -> None:
    assert parse({"job_name": "job"}) == "no known event"
    assert parse({"job_start_time": T, "rank": "0"}) == "bad rank"
    assert parse({"job_start_time": T, "run_id": 7}) == "bad run id"
    assert parse({"custom_badput_event_start_time": T}) == "bad event type"
    assert parse({"elastic_wait_start_time": T, "elastic_wait_event_type": 3}) == "bad event type"
    assert parse({"disruption_time": T, "disruption_cause": ""}) == "bad cause"
    assert parse({"elastic_slice_counts_timestamp": T, "active_slices": 1}) == "bad slice count"
    assert parse(Hostile()) == "unreadable payload"  # type: ignore[arg-type]
    assert parse(None) == "unreadable payload"  # type: ignore[arg-type]


KEYS = st.sampled_from([
    *("job_start_time", "step_count", "step_start_time", "event_type", "checkpoint_manager_start_time"),
    *("checkpoint_manager_duration_secs", "custom_badput_event_type", "custom_badput_event_end_time", "rank"),
    *("elastic_slice_counts_timestamp", "active_slices", "run_id", "reached_preemption", "directory", "step"),
])  # fmt: skip
VALUES = json_values() | st.floats() | st.just(T) | st.sampled_from(["save", "restore", "\ud800"])


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_nothing_that_a_log_can_hold_raises(payload: dict[str, Any]) -> None:
    parsed = parse(payload)
    assert isinstance(parsed, str) or all(0 <= event.t < 7_258_118_400_000_000 for event in parsed)


def _args(code: EventCode) -> st.SearchStrategy[Any]:
    if code in {EventCode.STEP_START, EventCode.STEP_END}:
        return st.integers(0, 2**31 - 1)
    if EventCode.SAVE_START <= code <= EventCode.RESTORE_END:
        return st.integers(-1, 2**31 - 1)
    if code in {EventCode.CUSTOM_START, EventCode.CUSTOM_END, EventCode.CAUSE}:
        return st.sampled_from(["EVAL", "A B", "É"])
    if code is EventCode.SLICES:
        return st.builds(SliceCounts, *[st.integers(0, 9)] * 3)
    return st.just(0)


@st.composite
def events(draw: st.DrawFn) -> Event:
    code = draw(st.sampled_from([code for code in EventCode if code is not EventCode.ALIVE]))
    t = draw(st.integers(0, 4_102_444_800_000_000))
    if code in {EventCode.SAVED, EventCode.RESTORED}:
        step, tier = draw(st.integers(-1, 9)), draw(st.sampled_from(["", "local", "persistent"]))
        return Event(t, code, CheckpointEvent(t + draw(st.integers(0, 10**12)), step, tier))
    return Event(t, code, draw(_args(code)))


@given(events())
def test_an_event_survives_its_payload(event: Event) -> None:
    assert parse(payload_of(event, "job")) == (event,)


@given(events())
def test_only_moments_have_time_in_their_keys(event: Event) -> None:
    named = [key for key in payload_of(event, "job") if "time" in key]
    assert all(micros(payload_of(event, "job")[key]) == event.t for key in named)


def test_a_sign_of_life_has_no_payload() -> None:
    with pytest.raises(ValueError, match="ALIVE"):
        payload_of(Event(US, EventCode.ALIVE), "job")
