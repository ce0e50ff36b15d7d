"""Summaries of traces, compared with traces from the official messages."""

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.trace import TraceSummary, summarize
from mldiagnostics.capture.wire import WireError, integer, text
from mldiagnostics.capture.wire import message as wire_message
from support.servers.profiler_protos import message
from support.servers.profiler_servers import trace

INSTANT = st.integers(1, 2**63 - 1)


@given(start_ns=INSTANT, stop_ns=INSTANT, events=st.integers(0, 5))
def test_property_times_and_emptiness_are_read_back(start_ns: int, stop_ns: int, events: int) -> None:
    summary = summarize(memoryview(trace(start_ns=start_ns, stop_ns=stop_ns, events=events)))
    assert summary == TraceSummary(start_ns, stop_ns, has_events=events > 0)


@given(st.permutations(["empty", "environment", "busy"]))
def test_property_the_order_of_planes_does_not_matter(order: list[str]) -> None:
    parts = {"empty": trace(events=0), "environment": trace(start_ns=7, stop_ns=9, events=0), "busy": _plane_only()}
    joined = b"".join(parts[name] for name in order if name != "empty")
    assert summarize(memoryview(joined)) == TraceSummary(7, 9, has_events=True)


@given(st.binary(max_size=200) | st.integers(0, 120).map(lambda cut: trace()[:cut]))
def test_property_any_bytes_are_summarised_or_rejected(data: bytes) -> None:
    try:
        summarize(memoryview(data))
    except WireError:
        return


def test_a_trace_without_an_environment_has_no_times() -> None:
    assert summarize(memoryview(_plane_only())) == TraceSummary(None, None, has_events=True)


def test_a_hostile_trace_of_many_statistics_costs_no_memory() -> None:
    plane = text(2, "Task Environment") + b"".join(wire_message(5, integer(1, key)) for key in range(1, 5000))
    hostile = memoryview(wire_message(1, plane))
    tracemalloc.start()
    try:
        summarize(hostile)
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()


def _plane_only() -> bytes:
    space = message("XSpace")()
    space.planes.add(name="/device:TPU:0").lines.add().events.add(metadata_id=1)
    return bytes(space.SerializeToString())


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_hostile_trace_of_many_fields_costs_little_time(depth: int) -> None:
    hostile = b"\x38\x01" * 2_000_000
    for number in (3, 1)[2 - depth :] if depth else ():
        hostile = wire_message(number, hostile)
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        summary = summarize(memoryview(hostile))
    finally:
        sys.setprofile(None)
    assert summary == TraceSummary(None, None, has_events=True)
    assert calls < 1_000_000
