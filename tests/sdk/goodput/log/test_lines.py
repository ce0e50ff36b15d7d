"""Lines of any making become events; fast where the SDK wrote them, and the same either way."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.conversion import PLAIN_KEYS, parse
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode
from mldiagnostics.goodput.events.payloads import payload_maker
from mldiagnostics.goodput.log.lines import LineParser
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline.drops import DroppedRecords
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.pipeline.sink_worker import drop_record
from support.goodput.logs import EventCollector

T = 1_735_689_600.25
US = 1_735_689_600_250_000


def line(key: str, t: float = T, *, job: str = "job", step: int | None = None, rank: int = 0, **beside: Any) -> bytes:
    """A line as the drain writes it."""
    payload = payload_maker(job, key, step_key="step_count", **beside)(t, step, "0123abcd-1")
    return encode(Record("event", t, "goodput", rank=rank, payload=payload)).encode()


def head(*, rank: int = 0, run: str = "") -> bytes:
    labels = {"": "", "run": run, "name": "job", "incarnation": "0123abcd"}
    return encode(Record("event", T, "segment", (1.0,), None, labels, rank, 0, "1", {})).encode()


def record(kind: Any, name: str, payload: dict[str, Any] | None = None) -> bytes:
    return encode(Record(kind, T, name, payload=payload)).encode()


def events_in(*blocks: bytes, job: str | None = None) -> EventCollector:
    lines, listener = LineParser(job_name=job), EventCollector()
    for block in blocks:
        lines.feed(block, listener)
    return listener


moments = st.integers(1_000_000_000_000_000, 7_199_999_999_999_999).map(lambda us: us / 1e6)


@given(st.lists(st.tuples(st.sampled_from([*PLAIN_KEYS, "step_start_time", "step_end_time"]), moments)), st.data())
def test_columns_say_what_payloads_say(fields: list[tuple[str, float]], data: st.DataObject) -> None:
    lines = [line(key, t, step=data.draw(st.integers(0, 2**31 - 1)) if "step" in key else None) for key, t in fields]
    cut = data.draw(st.integers(0, len(lines)))
    payloads = [json.loads(text)["payload"] for text in lines]
    expected = sorted(event for each in payloads for event in parse(each, rank=2, run="r"))
    for blocks in ([b"".join(lines[:cut]), b"".join(lines[cut:])], lines):
        listener = events_in(head(rank=2, run="r"), *blocks)
        assert sorted(listener.events) == expected
        assert not listener.ignored


def test_most_lines_go_by_columns() -> None:
    block = b"".join(line("step_start_time", T + step, step=step) for step in range(1000))
    listener = events_in(head(), block)
    assert listener.steps() == list(range(1000))
    assert listener.bulk == 1000


def test_a_checkpoint_amid_the_lines_is_no_hindrance() -> None:
    steps = b"".join(line("step_start_time", T + step, step=step) for step in range(1000))
    listener = events_in(head(), steps + line("checkpoint_save_start_time") + steps)
    assert listener.bulk == 2000
    assert (EventCode.SAVE_START, -1) in listener.pairs


def test_what_columns_do_not_know_is_read_too() -> None:
    custom = line("custom_badput_event_start_time", custom_badput_event_type="eval")
    block = line("job_start_time") + custom + line("step_start_time", step=1) + line("job_end_time")
    assert sorted(events_in(head(), block).pairs) == [
        (EventCode.JOB_START, 0), (EventCode.JOB_END, 0), (EventCode.STEP_START, 1), (EventCode.CUSTOM_START, "EVAL"),
    ]  # fmt: skip


def test_a_head_amid_the_lines_says_whose_the_next_are() -> None:
    block = head(rank=1, run="a") + line("job_start_time") * 2 + head(rank=2, run="b") + line("job_end_time") * 2
    assert events_in(block).events == [
        Event(US, EventCode.JOB_START, 0, 1, "a"), Event(US, EventCode.JOB_START, 0, 1, "a"),
        Event(US, EventCode.JOB_END, 0, 2, "b"), Event(US, EventCode.JOB_END, 0, 2, "b"),
    ]  # fmt: skip


def test_files_that_somebody_joined_are_taken_apart_once() -> None:
    block = b"".join(head(rank=rank) + line("step_start_time", step=rank) for rank in range(200))
    lines, listener, passes = LineParser(), EventCollector(), 0

    def count(_: object, event: str, called: Any) -> None:
        nonlocal passes
        passes += event == "c_call" and called.__name__ == "split" and isinstance(called.__self__, re.Pattern)

    sys.setprofile(count)
    try:
        lines.feed(block, listener)
    finally:
        sys.setprofile(None)
    assert [(event.arg, event.rank) for event in listener.events] == [(rank, rank) for rank in range(200)]
    assert passes == 1


def test_the_peers_cache_is_a_log() -> None:
    entries = [
        {"job_name": "job", "job_start_time": T},
        {"job_name": "job", "step_count": 3.0, "step_start_time": T},
        {"job_name": "job", "event_type": "save", "step": 1, "checkpoint_manager_blocking_start_time": T}
        | {"checkpoint_manager_blocking_duration_secs": 1},
    ]
    block = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
    assert events_in(block).events == [
        Event(US, EventCode.JOB_START), Event(US, EventCode.STEP_START, 3),
        Event(US, EventCode.SAVED, CheckpointEvent(US + 1_000_000, 1)),
    ]  # fmt: skip


def test_a_run_tells_of_life_and_of_causes() -> None:
    block = record("heartbeat", "alive", {"intervalSeconds": 10}) + record("phase", "Active", {"host": "h"})
    block += record("phase", "Failed", {"reason": "Preempted"}) + record("phase", "Failed", {"reason": "Lost"})
    block += record("metric", "loss") + record("config", "configs", {"user": {}}) + record("event", "note", {"a": 1})
    listener = events_in(block)
    assert listener.pairs == [(EventCode.ALIVE, 0), (EventCode.CAUSE, "preemption")]
    assert not listener.ignored


def test_events_that_never_came_into_the_log_are_counted() -> None:
    origin = Origin(run_id="", name="job", storage="", incarnation="0123abcd", host="host")
    losses = [
        DroppedRecords("", "bad-value", 2, "goodput: str is not a number"),
        DroppedRecords("jsonl:/log", "queue-full", 5, ""),
        DroppedRecords("", "bad-value", 7, "loss: None"), DroppedRecords("stdout", "queue-full", 9, ""),
    ]  # fmt: skip
    # At a fixed time: the time of day may hold the text that is replaced below.
    lines = [encode(drop_record(origin, loss)._replace(t=T)).encode() for loss in losses]
    hostile = [b'["x"]', b"{}", b'"new"', b"null", b"NaN", b"1e999", b"-1"]
    strange = [lines[0].replace(b'"bad-value"', each) for each in hostile]
    strange += [lines[0].replace(b"2.0", each) for each in hostile]
    listener = events_in(*lines, *strange)
    assert listener.ignored == {"never logged: bad-value": 2, "never logged: queue-full": 5}


def test_an_entry_of_orbax_without_start_ends_when_it_was_logged() -> None:
    payload = {"job_name": "job", "event_type": "restore", "checkpoint_manager_duration_secs": 2.0}
    assert events_in(record("event", "goodput", payload)).events == [
        Event(US - 2_000_000, EventCode.RESTORED, CheckpointEvent(US))
    ]


def test_other_jobs_are_passed_over() -> None:
    block = line("job_start_time") + line("job_end_time", job='a "b"') + line("step_start_time", job='a "b"', step=1)
    assert events_in(block, job="job").pairs == [(EventCode.JOB_START, 0)]
    assert sorted(events_in(block, job='a "b"').pairs) == [
        (EventCode.JOB_END, 0),
        (EventCode.STEP_START, 1),
    ]


@pytest.mark.parametrize(
    ("garbage", "reason"),
    [
        (b"\xff\xfe\x00garbage\n", "unreadable line"),
        (line("job_start_time")[:-20] + b"\n", "unreadable line"),
        (b"[1, 2]\n", "unreadable line"),
        (b"[" * 100_000 + b"\n", "unreadable line"),
        (line("step_start_time"), "bad step"),
        (line("step_start_time", step=1).replace(b'"step_count":1', b'"step_count":-1'), "bad step"),
        (line("job_start_time").replace(b"1735689600.25", b"NaN"), "bad time"),
        (line("job_start_time").replace(b"1735689600.25", b"1735689600250.0"), "bad time"),
    ],
)
def test_garbage_is_counted_and_costs_nothing_else(garbage: bytes, reason: str) -> None:
    listener = events_in(head(), line("job_start_time") + garbage + line("step_start_time", step=7), b"\n \n")
    assert sorted(listener.pairs) == [(EventCode.JOB_START, 0), (EventCode.STEP_START, 7)]
    assert listener.ignored == {reason: 1}


@given(st.lists(st.binary(max_size=40) | st.sampled_from([line("job_start_time"), head(), b"\n", b"{}"]), max_size=8))
def test_nothing_that_a_file_can_hold_raises(pieces: list[bytes]) -> None:
    events_in(*pieces)
