"""A lane sees every record into its sink, in order, through outages; what it cannot is counted, and nothing else."""

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


def lane_into(sink: ListSink, drops: Drops | None = None) -> SinkWorker:
    lane = SinkWorker(sink.maker, origin(), drops or Drops())
    lane.start()
    return lane


def marked(lane: SinkWorker, *, within_s: float = DEADLINE_S, closing: bool = False) -> bool:
    """Whether the sink has all that was offered, within the time."""
    marker = FlushToken(deadline=time.monotonic() + within_s, closing=closing)
    lane.put_token(marker)
    return marker.wait(1) == [True]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 200), max_size=8), st.integers(1, 70))
def test_batches_keep_the_order_and_the_pace(sizes: list[int], at_most: int) -> None:
    sink = ListSink(batch_policy=BatchPolicy(records=at_most))
    lane = lane_into(sink)
    everything: list[Record] = []
    for size in sizes:
        batch = numbers(len(everything), size)
        everything += batch
        lane.offer(batch, 0)
    assert marked(lane, closing=True)
    assert sink.taken == everything
    assert max(sink.batches, default=0) <= at_most
    assert (lane.written, lane.waiting, sink.closed) == (len(everything), 0, True)


def test_small_amounts_are_gathered_until_they_are_worth_a_batch() -> None:
    sink = ListSink(batch_policy=BatchPolicy(records=10, gather_s=3600))
    lane = lane_into(sink)
    for number in range(12):
        lane.offer(numbers(number, 1), 0)
    eventually(lambda: bool(sink.taken), "the first batch")
    assert sink.batches[0] == 10
    assert marked(lane, closing=True)
    assert sink.batches == [10, 2]


def test_a_batch_is_not_gathered_for_longer_than_it_may() -> None:
    sink = ListSink(batch_policy=BatchPolicy(records=10, gather_s=0.05))
    lane = lane_into(sink)
    lane.offer(numbers(0, 1), 0)
    eventually(lambda: len(sink.taken) == 1, "the lone record")
    assert marked(lane, closing=True)


def test_a_sink_is_flushed_by_itself_only_where_it_asks_for_that() -> None:
    eager, lazy = ListSink(batch_policy=BatchPolicy(flush_s=0.05)), ListSink()
    first, second = lane_into(eager), lane_into(lazy)
    for lane in (first, second):
        lane.offer(numbers(0, 1), 0)
    eventually(lambda: eager.flushes > 0 and bool(lazy.taken), "the flush")
    assert lazy.flushes == 0
    assert marked(second)
    assert lazy.flushes == 1
    assert marked(first, closing=True)
    assert marked(second, closing=True)


@pytest.mark.parametrize("opened", [False, True])
def test_an_outage_delays_and_loses_nothing(opened: bool) -> None:
    sink, drops = ListSink(), Drops()
    if not opened:
        sink.down()
    lane = lane_into(sink, drops)
    lane.offer(numbers(0, 5), 0)
    if opened:
        assert marked(lane)
    sink.down()
    lane.offer(numbers(5, 5), 0)
    assert not marked(lane, within_s=0.1)
    sink.up()
    lane.offer(numbers(10, 5), 0)
    assert marked(lane, closing=True)
    assert sink.taken == numbers(0, 15)
    assert drops.totals() == {}


def test_what_keeps_a_sink_away_is_told_also_where_it_was_not_known_at_first() -> None:
    def told(kind: str) -> int:
        return diagnostics.counts().get(f"{kind} list", 0)

    before = told("sink-not-ready"), told("sink-unavailable")
    sink = ListSink()
    sink.fault = SinkNotReady("still looking")
    lane = lane_into(sink)
    eventually(lambda: told("sink-not-ready") > before[0], "that it is not known yet")
    assert told("sink-unavailable") == before[1]
    sink.down()
    eventually(lambda: told("sink-unavailable") > before[1], "what it is")
    sink.up()
    assert marked(lane, closing=True)


def test_what_is_refused_is_counted_and_the_rest_goes_on() -> None:
    sink, drops = ListSink(), Drops()
    lane = lane_into(sink, drops)
    assert marked(lane)
    sink.refuse()
    lane.offer(numbers(0, 5), 0)
    assert not marked(lane, within_s=3600)
    sink.up()
    lane.offer(numbers(5, 5), 0)
    assert marked(lane, closing=True)
    assert sink.taken == numbers(5, 5)
    assert drops.totals() == {"list: refused": 5}


def test_a_sink_that_breaks_ends_neither_its_thread_nor_the_records_after() -> None:
    sink = ListSink()
    lane = lane_into(sink)
    assert marked(lane)
    sink.fault = ZeroDivisionError("a fault of the sink's")
    lane.offer(numbers(0, 1), 0)
    assert not marked(lane, within_s=3600)
    sink.up()
    lane.offer(numbers(1, 1), 0)
    assert marked(lane, closing=True)
    assert sink.taken == numbers(1, 1)


def test_a_queue_that_is_full_drops_the_newest_and_tells_the_gap_where_it_is() -> None:
    sink, drops = HangingSink(), Drops()
    lane = lane_into(sink, drops)
    lane.offer(numbers(0, 1), 0)
    assert sink.entered.wait(DEADLINE_S)
    bound = sink_worker.CAPACITY - 1
    lane.offer(numbers(1, bound), 0)
    lane.offer(numbers(1 + bound, 7), 0)
    lane.offer([Record("drop", 1.0, "bad-value", 1.0)], 0)
    assert drops.totals() == {"list: queue-full": 7}
    sink.released.set()
    assert marked(lane)
    lane.offer(numbers(9, 1), 0)
    assert marked(lane, closing=True)
    assert sink.taken[: 1 + bound] == numbers(0, 1 + bound)
    assert [(each.kind, each.name, each.value) for each in sink.taken[1 + bound :]] == [
        ("drop", "queue-full", 7.0),
        ("metric", "n", 9.0),
    ]


def test_large_values_are_bounded_by_their_bytes() -> None:
    sink, drops = HangingSink(), Drops()
    lane = lane_into(sink, drops)
    lane.offer(numbers(0, 1), 0)
    assert sink.entered.wait(DEADLINE_S)
    lane.offer(numbers(1, 1), sink_worker.CAPACITY_BYTES)
    lane.offer(numbers(2, 1), 1)
    assert drops.totals() == {"list: queue-full": 1}
    sink.released.set()
    assert marked(lane, closing=True)
    assert [each.value for each in sink.taken] == [0.0, 1.0]


def test_a_sink_that_cannot_even_be_opened_does_not_keep_the_process_waiting() -> None:
    sink, drops = ListSink(), Drops()
    sink.refuse()
    lane = lane_into(sink, drops)
    lane.offer(numbers(0, 3), 0)
    assert not marked(lane, within_s=3600, closing=True)
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


def test_the_end_does_not_wait_for_what_is_safe_already() -> None:
    sink = DurableSink()
    lane = lane_into(sink)
    lane.offer(numbers(0, 1), 0)
    assert not marked(lane, within_s=3600, closing=True)
    assert (sink.flushes, sink.closed) == (1, True)
