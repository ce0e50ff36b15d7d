"""Values that are not ready delay no other record, and are written once they are ready or counted at the end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.metric_types import MetricType
from mldiagnostics.pipeline import unready
from mldiagnostics.pipeline.buffer import CAPACITY_BYTES, Buffer
from mldiagnostics.pipeline.deferred_value import DeferredValue
from mldiagnostics.pipeline.recorder import RecordPipeline
from support.records import DEADLINE_S, ListSink, eventually, origin, recording_into
from support.time_limits import with_enough_time

if TYPE_CHECKING:
    import pytest
    from mldiagnostics.pipeline.buffer import PayloadMaker
    from mldiagnostics.pipeline.recorder import CloseSummary
    from mldiagnostics.pipeline.records import Kind


class Device:
    """A device that is busy until `is_done`; a value of it is 0.5."""

    def __init__(self) -> None:
        self.is_done = False
        self.reads = 0

    def value(self) -> DeferredValue:
        return DeferredValue(self, Device._read, lambda device: device.is_done)

    def _read(self) -> float:
        assert self.is_done, "a read would wait"
        self.reads += 1
        return 0.5


class HungRead:
    """A value whose readiness is not known, with a read that hangs until `released`."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()

    def value(self) -> DeferredValue:
        return DeferredValue(self, HungRead._read)

    def _read(self) -> float:
        self.entered.set()
        assert self.released.wait(DEADLINE_S)
        return 0.5


def put(
    buffer: Buffer,
    name: str,
    value: object = None,
    step: object = None,
    *,
    kind: Kind = "metric",
    payload: PayloadMaker | dict[str, object] | None = None,
    charge: int = 0,
) -> None:
    buffer.put((time.time(), kind, name, value, step, None, payload, charge))


def taken(sink: ListSink) -> list[tuple[str, int | None]]:
    return [(each.name, each.step) for each in sink.taken]


def test_a_value_that_is_not_ready_delays_no_other_record() -> None:
    buffer, sink, device = Buffer(), ListSink(), Device()
    with recording_into(sink, buffer=buffer) as recording:
        put(buffer, "loss", 1.0, 4)
        put(buffer, "loss", device.value(), 5)
        put(buffer, "alive", kind="heartbeat", step=6, payload={})
        put(buffer, "cpu", 1.0)
        eventually(lambda: len(sink.taken) == 3, "the records around it")
        assert taken(sink) == [("loss", 4), ("alive", 6), ("cpu", None)]
        device.is_done = True
        assert recording.flush(DEADLINE_S)
    assert taken(sink)[3:] == [("loss", 5)]
    assert device.reads == 1


def test_metrics_of_one_name_and_those_with_steps_stay_in_order() -> None:
    buffer, sink, device = Buffer(), ListSink(), Device()
    with recording_into(sink, buffer=buffer) as recording:
        for step in range(100):  # more than a slice
            put(buffer, "loss", device.value() if step % 3 == 1 else 1.0, step)
            put(buffer, "lr", 1.0, step)
        put(buffer, "loss", 1.0)
        put(buffer, MetricType.MFU, (device.value(), 1.0))
        put(buffer, "mfu", 1.0)
        put(buffer, "cpu", 1.0)
        eventually(lambda: ("cpu", None) in taken(sink), "the metric of another name without a step")
        assert taken(sink) == [("loss", 0), ("lr", 0), ("cpu", None)]
        device.is_done = True
        assert recording.flush(DEADLINE_S)
    steps = [step for _, step in taken(sink) if step is not None]
    assert steps == sorted(steps)
    assert len(sink.taken) == 204
    assert taken(sink)[-3:] == [("loss", None), ("mfu", None), ("mfu", None)]


def test_metrics_of_other_names_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unready, "ORDER_S", 0.0)
    buffer, sink, device = Buffer(), ListSink(), Device()
    with recording_into(sink, buffer=buffer):
        put(buffer, "loss", device.value(), 5)
        put(buffer, "loss", 1.0, 6)
        put(buffer, "lr", 1.0, 6)
        eventually(lambda: taken(sink) == [("lr", 6)], "the metric of another name")
        device.is_done = True
        eventually(lambda: taken(sink) == [("lr", 6), ("loss", 5), ("loss", 6)], "the others, in order")


def test_an_event_whose_step_is_not_ready_delays_no_other_event() -> None:
    buffer, sink, device = Buffer(), ListSink(), Device()
    device_step = DeferredValue(device, lambda _: 7.0, lambda device: device.is_done)

    def make(_t: float, step: int | None, _id: str) -> dict[str, object]:
        return {"step": step}

    with recording_into(sink, buffer=buffer):
        put(buffer, "goodput", kind="event", step=device_step, payload=make)
        put(buffer, "goodput", kind="event", step=8, payload=make)
        put(buffer, "loss", 1.0, 8)
        eventually(lambda: len(sink.taken) == 2, "the records behind it")
        device.is_done = True
        eventually(lambda: len(sink.taken) == 3, "the event itself")
    assert [each.payload for each in sink.taken] == [{"step": 8}, None, {"step": 7}]


def test_a_flush_waits_for_values_that_are_not_ready() -> None:
    buffer, sink, device = Buffer(), ListSink(), Device()
    with recording_into(sink, buffer=buffer) as recording:
        put(buffer, "loss", device.value(), 5)
        assert not recording.flush(0.2)
        device.is_done = True
        assert recording.flush(DEADLINE_S)
        assert taken(sink) == [("loss", 5)]


def test_held_records_are_bounded_and_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unready, "HELD_CAPACITY", 3)
    buffer, sink, device = Buffer(), ListSink(), Device()
    with recording_into(sink, buffer=buffer) as recording:
        for step in range(5):
            put(buffer, "loss", device.value(), step)
        eventually(lambda: recording.drops == {"buffer-full": 2}, "two have no room")
        device.is_done = True
        eventually(lambda: ("loss", 2) in taken(sink), "the others")
    assert [each for each in taken(sink) if each[0] == "loss"] == [("loss", 0), ("loss", 1), ("loss", 2)]


def test_held_bytes_leave_room_for_other_records() -> None:
    buffer, sink, device = Buffer(), ListSink(), Device()
    with recording_into(sink, buffer=buffer) as recording:
        for step in range(5):
            put(buffer, "loss", device.value(), step, charge=unready.HELD_BYTES // 2)
        eventually(lambda: recording.drops == {"buffer-full": 3}, "three have no room")
        put(buffer, "note", kind="event", payload={}, charge=CAPACITY_BYTES - unready.HELD_BYTES)
        eventually(lambda: ("note", None) in taken(sink), "the large event")
        device.is_done = True


def test_at_the_end_values_that_are_not_ready_are_counted_and_others_written() -> None:
    def attempt(limit_s: int) -> tuple[CloseSummary, ListSink, Buffer]:
        buffer, sink = Buffer(), ListSink()
        recording = RecordPipeline(origin(), [sink.maker], buffer=buffer)
        put(buffer, "loss", Device().value(), 5, charge=CAPACITY_BYTES // 8)
        put(buffer, "lr", 1.0, 6)
        put(buffer, "Failed", kind="phase", payload={})
        return recording.close(limit_s), sink, buffer

    closed, sink, buffer = with_enough_time(attempt, lambda result: result[1].closed)
    assert (closed.complete, closed.dropped) == (False, {"unwritten": 1})
    assert taken(sink) == [("Failed", None), ("lr", 6), ("unwritten", None)]
    assert sink.closed
    put(buffer, "large", 1.0, charge=CAPACITY_BYTES)
    assert len(buffer.entries) == 1, "the bytes of the unread value are free"


def test_values_that_become_ready_while_the_pipeline_closes_are_written() -> None:
    buffer, sink, device = Buffer(), ListSink(), Device()
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer)
    put(buffer, "loss", device.value(), 5)
    closing: list[Any] = []
    thread = threading.Thread(target=lambda: closing.append(recording.close(DEADLINE_S)))
    thread.start()
    drain = recording._drain
    assert drain is not None
    eventually(lambda: drain._unready.is_closing, "the drain has the closing token")
    put(buffer, "next", 1.0)
    device.is_done = True
    thread.join()
    assert (closing[0].complete, closing[0].dropped, taken(sink)) == (True, {}, [("loss", 5)])
    assert len(buffer.entries) == 1, "later records belong to the next pipeline"


def test_records_before_a_read_that_hangs_are_written_and_those_behind_it_counted() -> None:
    buffer, sink, hung = Buffer(), ListSink(), HungRead()
    put(buffer, "loss", 1.0, 4)
    put(buffer, "loss", hung.value(), 5)
    put(buffer, "loss", 1.0, 6)
    put(buffer, "Failed", kind="phase", payload={})
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer)
    assert hung.entered.wait(DEADLINE_S)
    eventually(lambda: taken(sink) == [("loss", 4)], "the record before it")
    put(buffer, "lr", 1.0, 6)
    closed = recording.close(0.2)
    assert (closed.complete, closed.dropped) == (False, {"unwritten": 4})
    assert not buffer.entries
    hung.released.set()
    drain = recording._drain
    assert drain is not None
    drain.thread.join(DEADLINE_S)
    assert taken(sink) == [("loss", 4)]


def test_records_before_a_ready_value_whose_read_hangs_are_counted_too() -> None:
    buffer, sink, hung = Buffer(), ListSink(), HungRead()
    put(buffer, "loss", 1.0, 4)
    put(buffer, "loss", DeferredValue(hung, HungRead._read, lambda _: True), 5)
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer)
    assert hung.entered.wait(DEADLINE_S)
    assert recording.close(0.2).dropped == {"unwritten": 2}
    hung.released.set()
