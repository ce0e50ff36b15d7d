"""A pipeline writes records of all threads and returns their numbers at its end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from mldiagnostics.pipeline import recorder as recordings
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.deferred_value import DeferredValue
from mldiagnostics.pipeline.recorder import CloseSummary, RecordPipeline
from mldiagnostics.pipeline.records import Record
from support.records import DEADLINE_S, HangingSink, ListSink, eventually, origin, recording_into

if TYPE_CHECKING:
    import pytest

CAPACITY = 50


def values(sink: ListSink) -> list[object]:
    return [each.value for each in sink.taken if each.kind == "metric"]


def test_records_are_written_without_a_flush() -> None:
    sink = ListSink()
    with recording_into(sink) as recording:
        recording.append("metric", "loss", value=0.5)
        eventually(lambda: values(sink) == [0.5], "the record")


def test_close_returns_the_numbers_of_records() -> None:
    sink = ListSink()
    recording = RecordPipeline(origin(), [sink.maker], buffer=Buffer())
    recording.append("metric", "loss", value=0.5)
    recording.append("metric", "", value=0.5)
    closed = recording.close(DEADLINE_S)
    assert closed == CloseSummary(written={"list": 2}, dropped={"bad-name": 1}, complete=True)
    assert (recording.close(DEADLINE_S), recording.drops) == (closed, {"bad-name": 1})
    assert sink.closed


def test_close_gives_up_a_hanging_sink_with_a_warning() -> None:
    hanging, good, buffer = HangingSink(), ListSink(), Buffer()
    recording = RecordPipeline(origin(), [hanging.maker, good.maker], buffer=buffer)
    recording.append("metric", "loss", value=0.5)
    assert hanging.entered.wait(DEADLINE_S)
    eventually(lambda: values(good) == [0.5], "the other sink has it")
    closed = recording.close(1.0)
    hanging.released.set()
    assert not closed.complete
    assert closed.dropped == {"list: unwritten": 1}
    assert values(good) == [0.5]


def test_the_end_of_the_process_has_one_deadline_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    close = RecordPipeline.close

    def watched(recording: RecordPipeline, timeout_s: float) -> CloseSummary:
        waited.append(timeout_s)
        return close(recording, timeout_s)

    monkeypatch.setattr(recordings, "EXIT_TIMEOUT_S", 1.0)
    monkeypatch.setattr(recordings, "_open", [])
    monkeypatch.setattr(
        RecordPipeline, "close", lambda self, timeout_s: (waited.append(timeout_s), close(self, timeout_s))[1]
    )
    sinks = [HangingSink() for _ in range(4)]
    for sink in sinks:
        RecordPipeline(origin(), [sink.maker], buffer=Buffer()).append("metric", "loss", value=0.5)
    recordings.close_all()
    assert recordings._open == []
    assert waited[0] <= 1.0
    assert waited[1:] == [recordings._SHORTEST_CLOSE_S] * 3
    for sink in sinks:
        sink.released.set()


def test_records_after_the_end_belong_to_the_next_pipeline() -> None:
    buffer, first, second = Buffer(), ListSink(), ListSink()
    for number, sink in enumerate((first, second)):
        recording = RecordPipeline(origin(), [sink.maker], buffer=buffer)
        buffer.add("metric", "", value=1.0)
        assert recording.close(DEADLINE_S).dropped == {"bad-name": 1}
        buffer.add("metric", "loss", value=number)
    assert (values(first), values(second)) == ([], [0.0])


def test_an_abandoned_drain_takes_no_records_of_the_next_one() -> None:
    buffer, first, second = Buffer(), ListSink(), ListSink()
    entered, released = threading.Event(), threading.Event()

    def read(_: None) -> float:  # as of an array that a hung collective never delivers
        entered.set()
        assert released.wait(DEADLINE_S)
        return 1.0

    hung = RecordPipeline(origin(), [first.maker], buffer=buffer)
    buffer.append((1.0, "metric", "loss", DeferredValue(None, read), None, None, None, 0))
    assert entered.wait(DEADLINE_S)
    closed = hung.close(0.1)
    assert (closed.complete, closed.dropped) == (False, {"unwritten": 1})
    recording = RecordPipeline(origin(), [second.maker], buffer=buffer)
    buffer.add("metric", "loss", value=2.0)
    released.set()
    assert recording.flush(DEADLINE_S)
    recording.close(DEADLINE_S)
    assert values(second) == [2.0]


def test_the_current_one_is_the_last_that_is_open() -> None:
    before = recordings.current()
    with recording_into(ListSink()) as first:
        assert recordings.current() is first
        with recording_into(ListSink()) as second:
            assert recordings.current() is second
        assert recordings.current() is first
    assert recordings.current() is before


class Recorder(RuleBasedStateMachine):
    """Any course of recording, beginning, flushing, closing and threads, with a buffer that may overflow."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = Buffer(capacity=CAPACITY)
        self.sinks = [ListSink()]
        self.recording: RecordPipeline | None = None
        self.made = self.dropped = 0

    @initialize(first=st.booleans())
    def maybe_begin(self, first: bool) -> None:
        if first:
            self.begin()

    @precondition(lambda self: self.recording is None)
    @rule()
    def begin(self) -> None:
        self.recording = RecordPipeline(origin(), [sink.maker for sink in self.sinks], buffer=self.buffer)

    @rule(count=st.integers(1, CAPACITY + 10))
    def record(self, count: int) -> None:
        for _ in range(count):
            self.buffer.add("metric", "n", value=self.made)
            self.made += 1

    @rule(count=st.integers(1, 20))
    def record_in_another_thread(self, count: int) -> None:
        thread = threading.Thread(target=self.record, args=[count])
        thread.start()
        thread.join()

    @precondition(lambda self: self.recording is not None)
    @rule(count=st.integers(0, 2 * CAPACITY))
    def add_ready_ones(self, count: int) -> None:
        assert self.recording is not None
        self.recording.extend([Record("metric", 0.0, "n", float(self.made + each)) for each in range(count)])
        self.made += count

    @precondition(lambda self: self.recording is not None)
    @rule()
    def flush(self) -> None:
        assert self.recording is not None
        assert self.recording.flush(DEADLINE_S)
        assert not self.buffer.entries

    @precondition(lambda self: self.recording is not None)
    @rule()
    def close(self) -> None:
        assert self.recording is not None
        closed = self.recording.close(DEADLINE_S)
        assert closed.complete
        self.dropped += closed.dropped.get("buffer-full", 0)
        self.recording = None
        self.all_but_what_was_dropped_is_there_in_order()

    @invariant()
    def the_bound_holds(self) -> None:
        assert sum(isinstance(entry, tuple) for entry in self.buffer.entries.copy()) <= CAPACITY

    def all_but_what_was_dropped_is_there_in_order(self) -> None:
        for sink in self.sinks:
            numbers = [each.value for each in sink.taken if each.kind == "metric"]
            recorded = sum(each.value for each in sink.taken if each.kind == "drop" and isinstance(each.value, float))
            assert numbers == sorted(set(map(float, numbers)))  # type: ignore[arg-type]
            assert len(numbers) + self.dropped == self.made
            assert recorded == self.dropped

    def teardown(self) -> None:
        if self.recording is not None:
            self.close()


TestAnyCourse = Recorder.TestCase
TestAnyCourse.settings = settings(max_examples=25, stateful_step_count=20)
