"""The buffer takes from any thread, keeps its bounds, loses nothing within them, and never raises or waits."""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.buffer import RESERVE, Buffer, Entry, FlushToken
from mldiagnostics.pipeline.values import MAX_VALUE_BYTES
from support.records import Hostile


def entries(buffer: Buffer) -> list[Entry]:
    return [entry for entry in buffer.entries if not isinstance(entry, FlushToken)]


def names(buffer: Buffer) -> list[object]:
    return [entry[2] for entry in entries(buffer)]


@given(st.integers(1, 20), st.integers(0, 40))
def test_the_count_is_bounded_and_the_oldest_stay(capacity: int, offered: int) -> None:
    buffer = Buffer(capacity=capacity)
    for number in range(offered):
        buffer.add("metric", str(number), value=1.0)
    assert names(buffer) == [str(number) for number in range(min(capacity, offered))]
    assert buffer.drops.totals() == ({"buffer-full": offered - capacity} if offered > capacity else {})


def test_how_a_run_ends_finds_room_where_metrics_do_not() -> None:
    buffer = Buffer(capacity=2)
    for number in range(4):
        buffer.add("metric", str(number), value=1.0)
    buffer.add("phase", "Failed")
    assert names(buffer) == ["0", "1", "Failed"]
    for number in range(2 * RESERVE):
        buffer.add("event", str(number), payload={})
    assert len(names(buffer)) == 2 + RESERVE


@given(st.lists(st.integers(1, MAX_VALUE_BYTES), max_size=30), st.integers(MAX_VALUE_BYTES, 20_000))
def test_the_bytes_are_bounded_and_given_back(sizes: list[int], capacity_bytes: int) -> None:
    buffer = Buffer(capacity_bytes=capacity_bytes)
    for size in sizes:
        buffer.add("metric", "text", value="x" * size)
    kept = entries(buffer)
    assert sum(entry[-1] for entry in kept) <= capacity_bytes
    assert len(kept) + buffer.drops.totals().get("buffer-full", 0) == len(sizes)
    for entry in kept:
        buffer.entries.popleft()
        buffer.give_back(entry[-1])
    buffer.add("metric", "text", value="x" * MAX_VALUE_BYTES)
    assert names(buffer) == ["text"]


def test_many_threads_lose_nothing_and_each_keeps_its_order() -> None:
    buffer = Buffer()
    threads, each = 8, 2000

    def work(thread: int) -> None:
        for number in range(each):
            buffer.add("metric", thread, value=1.0, step=number)

    workers = [threading.Thread(target=work, args=[thread]) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for thread in range(threads):
        assert [entry[4] for entry in entries(buffer) if entry[2] == thread] == list(range(each))


@pytest.mark.parametrize("part", ["name", "value", "step", "labels", "t", "payload"])
def test_a_hostile_object_costs_its_own_record_at_most(part: str) -> None:
    buffer = Buffer()
    arguments: dict[str, Any] = {"name": "loss", "value": 0.5, part: Hostile()}
    buffer.add("metric", **arguments)
    assert len(buffer.entries) + sum(buffer.drops.totals().values()) == 1


@given(st.floats(0, 4e9), st.integers(-12, 12))
def test_moments_are_unix_seconds_or_datetimes(moment: float, hours: int) -> None:
    buffer = Buffer()
    zone = dt.timezone(dt.timedelta(hours=hours))
    buffer.add("metric", "loss", value=1.0, t=moment)
    buffer.add("metric", "loss", value=1.0, t=dt.datetime.fromtimestamp(moment, zone))
    first, second = (entry[0] for entry in entries(buffer))
    assert first == moment
    assert second == pytest.approx(moment, abs=1e-5)


def test_labels_are_copied_as_texts_and_count_towards_the_limit() -> None:
    buffer = Buffer()
    labels: dict[Any, Any] = {"host": "a", 1: [2]}
    buffer.add("metric", "loss", value=1.0, labels=labels)
    labels["host"] = "b"
    buffer.add("metric", "loss", value="x" * 4000, labels={"long": "y" * 100})
    assert [entry[5] for entry in entries(buffer)] == [{"host": "a", "1": "[2]"}]
    assert buffer.drops.totals() == {"too-large": 1}


def test_a_payload_may_be_larger_than_a_value() -> None:
    buffer = Buffer()
    content = {"configs": "x" * (2 * MAX_VALUE_BYTES)}
    buffer.add("config", "user", payload=content)
    buffer.add("config", "user", payload={"configs": "x" * 100_000})
    assert [entry[6] for entry in entries(buffer)] == [content]
    assert buffer.drops.totals() == {"too-large": 1}


def test_a_token_is_acknowledged_until_its_deadline() -> None:
    soon = FlushToken(deadline=time.monotonic() + 60, closing=False)
    soon.acknowledge(delivered=True)
    soon.acknowledge(delivered=False)
    assert soon.wait(2) == [True, False]
    past = FlushToken(deadline=time.monotonic() - 1, closing=False)
    past.acknowledge(delivered=True)
    assert past.wait(2) == [True]


def test_a_thread_may_wait_for_another_one_that_needs_the_lock() -> None:
    """As a signal handler does that interrupts a record: it waits for the last heartbeat."""
    buffer = Buffer()

    def while_locked() -> None:
        buffer.resume()
        other = threading.Thread(target=buffer.add, args=("heartbeat", "of the other"), daemon=True)
        other.start()
        other.join(60)
        assert not other.is_alive()

    buffer.suspend(while_locked)
    buffer.put((1.0, "metric", "of the holder", 1.0, None, None, None, 0))
    assert names(buffer) == ["of the other", "of the holder"]
