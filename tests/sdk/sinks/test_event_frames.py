"""Events and frames equal those of protobuf and of TensorBoard's own writer."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from mldiagnostics.sinks.event_frames import frames, number_event, scalar_event, version_event
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

TIMES = st.floats(0, 4e9)
STEPS = st.integers(-(2**63), 2**63 - 1)
TAGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
NUMBERS = st.floats(width=32, allow_nan=False)
SCALARS = st.lists(st.tuples(TAGS, NUMBERS), max_size=4)


def tensorboards_frames(events: list[bytes]) -> bytes:
    file = BytesIO()
    writer: Any = RecordWriter(file)
    for event in events:
        writer.write(event)
    return file.getvalue()


@given(TIMES, STEPS, SCALARS)
@example(5.0, 0, [("loss", 0.0)])
@example(0.0, 127, [("", -0.0)])
@example(1.5, 128, [("x" * 130, 2.0**-149)])
def test_an_event_equals_protobufs(t: float, step: int, scalars: list[tuple[str, float]]) -> None:
    values = [Summary.Value(tag=tag, simple_value=number) for tag, number in scalars]
    parsed = Event.FromString(scalar_event(t, step, scalars))
    assert parsed == Event(wall_time=t, step=step, summary=Summary(value=values))
    assert [(each.tag, each.simple_value) for each in parsed.summary.value] == scalars


@given(TIMES, STEPS, TAGS, st.floats(allow_nan=False))
def test_an_event_of_one_number_is_the_same(t: float, step: int, tag: str, number: float) -> None:
    assert number_event(t, step, tag, number) == scalar_event(t, step, [(tag, number)])


def test_a_number_beyond_32_bit_floats_is_infinite() -> None:
    parsed = Event.FromString(scalar_event(1.0, 1, [("a", 1e300), ("b", -1e300)]))
    assert [each.simple_value for each in parsed.summary.value] == [float("inf"), float("-inf")]


def test_the_first_event_is_the_version() -> None:
    assert Event.FromString(version_event(7.0)) == Event(wall_time=7.0, file_version="brain.Event:2")


@given(st.lists(st.binary(max_size=40), max_size=20))
@example([b""])
@example([bytes([place]) * 33 for place in range(100)])
def test_frames_equal_tensorboards(events: list[bytes]) -> None:
    assert frames(events) == tensorboards_frames(events)


@given(st.integers(0, 2**40), st.integers(1, 300))
def test_frames_of_many_events_equal_tensorboards(first: int, count: int) -> None:
    events = [scalar_event(5.0, step, [("step_deviation", step / 7)]) for step in range(first, first + count)]
    assert frames(events) == tensorboards_frames(events)
