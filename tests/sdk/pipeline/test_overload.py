"""While records are made faster than they can be written, the oldest metrics make room, and nothing else does."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from mldiagnostics.pipeline import overload
from mldiagnostics.pipeline.buffer import CAPACITY, Buffer
from mldiagnostics.pipeline.overload import OVERLOAD_CAPACITY, Overload
from mldiagnostics.pipeline.records import Record
from support.records import DEADLINE_S, HangingSink, ListSink, eventually, recording_into

if TYPE_CHECKING:
    import pytest


def test_a_full_buffer_is_small_until_it_is_no_longer_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "PASS_S", 0.0)
    buffer = Buffer()
    pace = Overload(buffer, ())
    buffer.on_full = pace.note_full
    pace.begin_pass()
    for step in range(CAPACITY):
        buffer.add("metric", "loss", value=0.5, step=step)
    assert (pace.is_late(), buffer.capacity) == (False, CAPACITY), "all had room"
    buffer.add("metric", "loss", value=0.5)
    assert (pace.is_late(), buffer.capacity) == (True, OVERLOAD_CAPACITY)
    buffer.entries.clear()
    pace.begin_pass()
    assert (pace.is_late(), buffer.capacity) == (False, OVERLOAD_CAPACITY)
    monkeypatch.setattr(overload, "CALM_S", -math.inf)
    pace.begin_pass()
    assert buffer.capacity == CAPACITY


def test_metrics_of_an_overload_are_written_in_order_or_counted_and_events_are_all_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overload, "PASS_S", 0.0)
    buffer, sink = Buffer(capacity=1000), ListSink()
    recorded = ready = 0
    with recording_into(sink, buffer=buffer) as recording:
        while sum(each.kind == "event" for each in sink.taken) < 5:
            for _ in range(20_000):
                buffer.add("metric", "loss", value=0.5, step=recorded)
                recorded += 1
            if buffer.drops.totals():
                recording.append("event", "note", payload={"step": recorded})
                recording.extend([Record("metric", 0.0, "ready", 0.5, recorded)])
                ready += 1
    steps = [each.step for each in sink.taken if each.kind == "metric"]
    assert steps == sorted(steps)
    assert recorded + ready == len(steps) + buffer_drops(sink)
    assert sum(each.name == "ready" for each in sink.taken) == ready
    notes = [each.payload["step"] for each in sink.taken if each.payload and "step" in each.payload]
    assert notes == sorted(notes)


def last_step(sink: ListSink) -> int:
    return next((each.step for each in reversed(sink.taken) if each.step is not None), 0)


def buffer_drops(sink: ListSink) -> int:
    return round(sum(float(each.value or 0) for each in sink.taken if each.kind == "drop"))  # type: ignore[arg-type]


def test_what_is_written_during_an_overload_is_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "PASS_S", 0.0)
    buffer, sink = Buffer(capacity=50_000), HangingSink()
    with recording_into(sink, buffer=buffer) as recording:
        buffer.add("metric", "loss", value=0.5, step=-1)
        recording.flush(0.0)
        assert sink.entered.wait(DEADLINE_S)
        ended = threading.Event()

        def loop() -> None:
            step = 0
            while not ended.is_set():
                buffer.add("metric", "loss", value=0.5, step=step)
                step += 1

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            eventually(lambda: buffer.capacity == OVERLOAD_CAPACITY, "the buffer is small")
            sink.released.set()
            eventually(lambda: last_step(sink) > 100_000, "the sink gets recent records")
        finally:
            ended.set()
            thread.join()
    steps = [each.step for each in sink.taken if each.kind == "metric" and each.step is not None]
    assert steps == sorted(steps)
    assert len(steps) < 100_000, "the oldest ones made room"


def test_a_burst_that_fits_is_written_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "PASS_S", 0.0)
    sink = ListSink()
    with recording_into(sink) as recording:
        for step in range(CAPACITY - 1):
            recording.append("metric", "loss", value=0.5, step=step)
        assert recording.flush(DEADLINE_S)
    assert [each.step for each in sink.taken] == list(range(CAPACITY - 1))
