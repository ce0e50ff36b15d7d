"""A sink worker writes all records in order, through outages, and counts drops."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics import diagnostics
from mldiagnostics.pipeline import sink_worker
from mldiagnostics.pipeline.buffer import FlushToken
from mldiagnostics.pipeline.drops import Drops
from mldiagnostics.pipeline.records import Record
from mldiagnostics.pipeline.sink import SinkNotReady
from mldiagnostics.pipeline.sink_worker import SinkWorker
from mldiagnostics.sinks import BatchPolicy
from support.records import DEADLINE_S, HangingSink, ListSink, eventually, origin

if TYPE_CHECKING:
    from collections.abc import Sequence


def numbers(start: int, count: int) -> list[Record]:
    return [Record("metric", 1.0, "n", float(number)) for number in range(start, start + count)]


def worker_for(sink: ListSink, drops: Drops | None = None) -> SinkWorker:
    worker = SinkWorker(sink.maker, origin(), drops or Drops())
    worker.start()
    return worker


def delivered(worker: SinkWorker, *, within_s: float = DEADLINE_S, closing: bool = False) -> bool:
    """Whether the sink has all that was offered, within the time."""
    token = FlushToken(deadline=time.monotonic() + within_s, closing=closing)
    worker.put_token(token)
    return token.wait(1) == [True]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 200), max_size=8), st.integers(1, 70))
def test_batches_keep_the_order_and_the_pace(sizes: list[int], at_most: int) -> None:
    sink = ListSink(batch_policy=BatchPolicy(records=at_most))
    worker = worker_for(sink)
    everything: list[Record] = []
    for size in sizes:
        batch = numbers(len(everything), size)
        everything += batch
        worker.offer(batch, 0)
    assert delivered(worker, closing=True)
    assert sink.taken == everything
    assert max(sink.batches, default=0) <= at_most
    assert (worker.written, worker.waiting, sink.closed) == (len(everything), 0, True)


def test_small_amounts_are_gathered_until_they_are_worth_a_batch() -> None:
    sink = ListSink(batch_policy=BatchPolicy(records=10, gather_s=3600))
    worker = worker_for(sink)
    for number in range(12):
        worker.offer(numbers(number, 1), 0)
    eventually(lambda: bool(sink.taken), "the first batch")
    assert sink.batches[0] == 10
    assert delivered(worker, closing=True)
    assert sink.batches == [10, 2]


def test_a_batch_is_not_gathered_for_longer_than_it_may() -> None:
    sink = ListSink(batch_policy=BatchPolicy(records=10, gather_s=0.05))
    worker = worker_for(sink)
    worker.offer(numbers(0, 1), 0)
    eventually(lambda: len(sink.taken) == 1, "the lone record")
    assert delivered(worker, closing=True)


def test_a_sink_is_flushed_at_intervals_only_with_flush_s() -> None:
    eager, lazy = ListSink(batch_policy=BatchPolicy(flush_s=0.05)), ListSink()
    first, second = worker_for(eager), worker_for(lazy)
    for worker in (first, second):
        worker.offer(numbers(0, 1), 0)
    eventually(lambda: eager.flushes > 0 and bool(lazy.taken), "the flush")
    assert lazy.flushes == 0
    assert delivered(second)
    assert lazy.flushes == 1
    assert delivered(first, closing=True)
    assert delivered(second, closing=True)


@pytest.mark.parametrize("opened", [False, True])
def test_an_outage_delays_records_without_loss(opened: bool) -> None:
    sink, drops = ListSink(), Drops()
    if not opened:
        sink.down()
    worker = worker_for(sink, drops)
    worker.offer(numbers(0, 5), 0)
    if opened:
        assert delivered(worker)
    sink.down()
    worker.offer(numbers(5, 5), 0)
    assert not delivered(worker, within_s=0.1)
    sink.up()
    worker.offer(numbers(10, 5), 0)
    assert delivered(worker, closing=True)
    assert sink.taken == numbers(0, 15)
    assert drops.totals() == {}


def test_a_cause_that_is_found_later_gets_its_own_warning() -> None:
    def warnings(kind: str) -> int:
        return diagnostics.counts().get(f"{kind} list", 0)

    before = warnings("sink-not-ready"), warnings("sink-unavailable")
    sink = ListSink()
    sink.fault = SinkNotReady("still looking")
    worker = worker_for(sink)
    eventually(lambda: warnings("sink-not-ready") > before[0], "that it is not known yet")
    assert warnings("sink-unavailable") == before[1]
    sink.down()
    eventually(lambda: warnings("sink-unavailable") > before[1], "the cause")
    sink.up()
    assert delivered(worker, closing=True)


def test_rejected_records_are_counted_and_others_continue() -> None:
    sink, drops = ListSink(), Drops()
    worker = worker_for(sink, drops)
    assert delivered(worker)
    sink.refuse()
    worker.offer(numbers(0, 5), 0)
    assert not delivered(worker, within_s=3600)
    sink.up()
    worker.offer(numbers(5, 5), 0)
    assert delivered(worker, closing=True)
    assert sink.taken == numbers(5, 5)
    assert drops.totals() == {"list: refused": 5}


def test_a_sink_that_breaks_ends_neither_its_thread_nor_the_records_after() -> None:
    sink = ListSink()
    worker = worker_for(sink)
    assert delivered(worker)
    sink.fault = ZeroDivisionError("a fault of the sink's")
    worker.offer(numbers(0, 1), 0)
    assert not delivered(worker, within_s=3600)
    sink.up()
    worker.offer(numbers(1, 1), 0)
    assert delivered(worker, closing=True)
    assert sink.taken == numbers(1, 1)


def test_a_full_queue_drops_new_records_and_records_the_gap() -> None:
    sink, drops = HangingSink(), Drops()
    worker = worker_for(sink, drops)
    worker.offer(numbers(0, 1), 0)
    assert sink.entered.wait(DEADLINE_S)
    bound = sink_worker.CAPACITY - 1
    worker.offer(numbers(1, bound), 0)
    worker.offer(numbers(1 + bound, 7), 0)
    worker.offer([Record("drop", 1.0, "bad-value", 1.0)], 0)
    assert drops.totals() == {"list: queue-full": 7}
    sink.released.set()
    assert delivered(worker)
    worker.offer(numbers(9, 1), 0)
    assert delivered(worker, closing=True)
    assert sink.taken[: 1 + bound] == numbers(0, 1 + bound)
    assert [(each.kind, each.name, each.value) for each in sink.taken[1 + bound :]] == [
        ("drop", "queue-full", 7.0),
        ("metric", "n", 9.0),
    ]


def test_large_values_are_bounded_by_their_bytes() -> None:
    sink, drops = HangingSink(), Drops()
    worker = worker_for(sink, drops)
    worker.offer(numbers(0, 1), 0)
    assert sink.entered.wait(DEADLINE_S)
    worker.offer(numbers(1, 1), sink_worker.CAPACITY_BYTES)
    worker.offer(numbers(2, 1), 1)
    assert drops.totals() == {"list: queue-full": 1}
    sink.released.set()
    assert delivered(worker, closing=True)
    assert [each.value for each in sink.taken] == [0.0, 1.0]


class CountingSink(ListSink):
    """Counts attempts to write, those that fail too."""

    attempts = 0

    def write(self, batch: Sequence[Record]) -> None:
        self.attempts += 1
        super().write(batch)


def test_large_values_are_bounded_by_their_bytes_while_a_sink_is_down() -> None:
    """Batches that wait for it count until it has taken their last record."""
    sink, drops = CountingSink(batch_policy=BatchPolicy(records=2)), Drops()
    worker = worker_for(sink, drops)
    assert delivered(worker)
    sink.down()
    worker.offer(numbers(0, 3), sink_worker.CAPACITY_BYTES - 1)
    eventually(lambda: sink.attempts > 0, "an attempt to write")
    worker.offer(numbers(3, 1), 2)
    assert drops.totals() == {"list: queue-full": 1}
    sink.up()
    assert delivered(worker)
    worker.offer(numbers(4, 3), sink_worker.CAPACITY_BYTES)
    assert delivered(worker, closing=True)
    assert [each.value for each in sink.taken if each.kind == "metric"] == [0.0, 1.0, 2.0, 4.0, 5.0, 6.0]


def test_a_sink_that_cannot_even_be_opened_does_not_keep_the_process_waiting() -> None:
    sink, drops = ListSink(), Drops()
    sink.refuse()
    worker = worker_for(sink, drops)
    worker.offer(numbers(0, 3), 0)
    assert not delivered(worker, within_s=3600, closing=True)
    assert drops.totals() == {"list: refused": 3}


class DurableSink(ListSink):
    """Takes everything, and cannot bring it where it belongs."""

    durable = True

    def flush(self) -> None:
        self.flushes += 1
        self.down()
        self._fail()

    def write(self, batch: Sequence[Record]) -> None:
        self.taken.extend(batch)


def test_close_does_not_wait_for_safe_records() -> None:
    sink = DurableSink()
    worker = worker_for(sink)
    worker.offer(numbers(0, 1), 0)
    assert not delivered(worker, within_s=3600, closing=True)
    assert (sink.flushes, sink.closed) == (1, True)
