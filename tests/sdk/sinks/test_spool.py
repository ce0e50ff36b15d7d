"""With a spool, a remote sink gets every record in order and with its origin, despite outages."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import BatchPolicy, SinkMaker, SinkRefused, SinkUnavailable
from mldiagnostics.sinks.spool import SpooledSink, spooled
from support.records import ListSink, origin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin

_numbers = itertools.count()
EVENTS = st.lists(st.sampled_from(["write", "down", "up", "flush", "restart"]), max_size=30)


class Receiver:
    """The receiver of all sinks: up or down, with its deliveries."""

    def __init__(self, *, max_bytes: int = 10**6) -> None:
        self.up = True
        self.url = f"receiver://{next(_numbers)}"
        self.max_bytes = max_bytes
        self.received: list[tuple[str, Record]] = []
        self.batches_left = 10**6
        self.open_connections = 0

    def sink(self, incarnation: str = "00000001") -> SpooledSink:
        maker = SinkMaker("receiver", lambda origin: Connection(self, origin))
        sink = spooled(maker, self.url, max_bytes=self.max_bytes).make(origin(incarnation=incarnation))
        assert isinstance(sink, SpooledSink)
        sink.open()
        return sink

    def values(self) -> list[object]:
        return [record.value for _, record in self.received]


class Connection(ListSink):
    """A sink that delivers to the receiver."""

    def __init__(self, receiver: Receiver, origin: Origin) -> None:
        super().__init__(batch_policy=BatchPolicy(records=1))
        self.receiver, self.origin = receiver, origin

    def open(self) -> None:
        super().open()
        self.receiver.open_connections += 1

    def close(self) -> None:
        self.receiver.open_connections -= 1

    def write(self, batch: Sequence[Record]) -> None:
        self._fail()
        self.receiver.batches_left -= 1
        if self.receiver.batches_left < 0:
            raise SinkUnavailable("the receiver has a rate limit")
        self.receiver.received.extend((self.origin.incarnation, record) for record in batch)

    def _fail(self) -> None:
        if not self.receiver.up:
            raise SinkUnavailable("the receiver is down")


@pytest.fixture(autouse=True)
def _spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))


def numbers(start: int, count: int = 3) -> list[Record]:
    return [Record("metric", 1.0, "loss", float(number)) for number in range(start, start + count)]


@given(EVENTS)
def test_any_sequence_of_outages_and_restarts_delivers_each_record_once_in_order(events: list[str]) -> None:
    receiver, process, written = Receiver(), 1, 0
    sink = receiver.sink(f"{process:08}")
    for event in [*events, "up", "flush"]:
        if event == "write":
            sink.write(numbers(written))
            written += 3
        elif event == "restart":
            sink.close()
            process += 1
            sink = receiver.sink(f"{process:08}")
        elif event == "flush" and receiver.up:
            sink.flush()
        elif event in {"up", "down"}:
            receiver.up = event == "up"
    sink.close()
    assert sorted(receiver.values()) == [float(number) for number in range(written)]  # type: ignore[type-var]
    for incarnation in {incarnation for incarnation, _ in receiver.received}:
        own = [record.value for sender, record in receiver.received if sender == incarnation]
        assert own == sorted(own)  # type: ignore[type-var]


def test_a_flush_during_an_outage_raises_sink_unavailable() -> None:
    receiver = Receiver()
    receiver.up = False
    sink = receiver.sink()
    sink.write(numbers(0))
    with pytest.raises(SinkUnavailable, match="down"):
        sink.flush()


def test_spooled_records_are_delivered_with_their_own_origin() -> None:
    receiver = Receiver()
    receiver.up = False
    ended = receiver.sink("00000001")
    ended.write(numbers(0))
    ended.close()
    receiver.up = True
    running = receiver.sink("00000002")
    running.write(numbers(3))
    running.flush()
    assert {(sender, record.value) for sender, record in receiver.received} == {
        *(("00000001", float(number)) for number in range(3)),
        *(("00000002", float(number)) for number in range(3, 6)),
    }


def test_a_full_spool_rejects_batches_and_keeps_its_records() -> None:
    receiver = Receiver(max_bytes=500)
    receiver.up = False
    sink = receiver.sink()
    accepted = 0
    with pytest.raises(SinkRefused, match="wait already"):  # noqa: PT012 - one of the first hundred
        for start in range(0, 300, 3):
            sink.write(numbers(start))
            accepted += 3
    receiver.up = True
    sink.flush()
    assert receiver.values() == [float(number) for number in range(accepted)]


def test_a_receiver_that_fails_in_between_gets_no_batch_twice(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.up = False
    first = receiver.sink()
    first.write(numbers(0, 10))
    first.close()
    for takes in (1, 2, 0, 3):
        receiver.batches_left = takes
        receiver.up = True
        sink = receiver.sink(f"0000001{takes}")
        with pytest.raises(SinkUnavailable):
            sink.flush()
        with pytest.raises(SinkUnavailable):  # nor a second time in one process
            sink.flush()
        sink.close()
    receiver.batches_left = 10**6
    last = receiver.sink("00000020")
    last.flush()
    last.close()
    assert receiver.values() == [float(number) for number in range(10)]
    assert receiver.open_connections == 0
    assert not list((tmp_path / "spool").rglob("records.jsonl"))


def test_only_the_truncated_line_of_a_killed_process_is_lost(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.up = False
    ended = receiver.sink("00000001")
    ended.write(numbers(0))
    ended.close()
    [file] = tmp_path.rglob("records.jsonl")
    file.write_bytes(file.read_bytes()[:-10])
    receiver.up = True
    receiver.sink("00000002").flush()
    assert receiver.values() == [0.0, 1.0]
