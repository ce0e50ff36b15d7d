"""The drain makes records of entries, in order, for every sink alike, and outlives what cannot be read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics.metric_types import MetricType
from mldiagnostics.pipeline.buffer import Buffer
from support.records import DEADLINE_S, HangingSink, Hostile, ListSink, eventually, recording_into

if TYPE_CHECKING:
    from mldiagnostics.pipeline.records import Record

STEPS = st.none() | st.integers(1 - 2**63, 2**63 - 1)
CALLS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(allow_nan=False), STEPS), max_size=300)


def drained(*calls: dict[str, Any]) -> list[Record]:
    """Return the records that a sink receives."""
    sink = ListSink()
    with recording_into(sink) as recording:
        for call in calls:
            recording.append(**{"kind": "metric", **call})
        assert recording.flush(DEADLINE_S)
    return sink.taken


@settings(max_examples=25)
@given(CALLS, st.integers(0, 300))
def test_every_sink_gets_all_records_in_order_also_earlier_ones(
    calls: list[tuple[str, float, int | None]], before: int
) -> None:
    buffer, first, second = Buffer(), ListSink(), ListSink()
    for name, value, step in calls[:before]:
        buffer.add("metric", name, value=value, step=step)
    with recording_into(first, second, buffer=buffer) as recording:
        for name, value, step in calls[before:]:
            recording.append("metric", name, value=value, step=step)
        assert recording.flush(DEADLINE_S)
    assert [(each.name, each.value, each.step) for each in first.taken] == calls
    assert second.taken == first.taken


def test_known_metrics_have_their_units_by_either_name() -> None:
    calls = [{"name": name, "value": 1.0} for name in (MetricType.MFU, "mfu", "step_time", "my_own")]
    assert [(each.name, each.unit) for each in drained(*calls)] == [
        ("mfu", "%"),
        ("mfu", "%"),
        ("step_time", "s"),
        ("my_own", "1"),
    ]


def test_texts_and_dicts_are_events() -> None:
    text, content = drained({"name": "note", "value": "hello"}, {"name": "note", "value": {"a": [1]}})
    assert (text.kind, text.value, text.payload) == ("event", None, {"message": "hello"})
    assert (content.kind, content.value, content.payload) == ("event", None, {"a": [1]})


def test_steps_may_be_any_whole_number() -> None:
    calls = [{"name": "loss", "value": 0.5, "step": step} for step in (7, np.int64(7), jnp.asarray(7), 7.0)]
    assert [(each.value, each.step) for each in drained(*calls)] == [(0.5, 7)] * 4


UNUSABLE = {"list": [1, 2], "nan": math.nan, "huge": 10**5000, "2^63": 2**63, "2.5": 2.5, "numpy": np.float32(0.5)}


@pytest.mark.parametrize("step", UNUSABLE.values(), ids=UNUSABLE)
def test_a_metric_without_a_usable_step_is_kept(step: Any) -> None:
    assert [(each.value, each.step) for each in drained({"name": "loss", "value": 0.5, "step": step})] == [(0.5, None)]


def test_a_step_that_was_donated_is_missing_and_the_value_is_not() -> None:
    step = jnp.asarray(3)
    buffer, sink = Buffer(), ListSink()
    buffer.add("metric", "loss", value=0.5, step=step)
    step.delete()
    with recording_into(sink, buffer=buffer) as recording:
        assert recording.flush(DEADLINE_S)
    assert [(each.value, each.step) for each in sink.taken] == [(0.5, None)]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"name": ""}, "bad-name"),
        ({"name": None}, "bad-name"),
        ({"name": 3}, "bad-name"),
        ({"name": Hostile()}, "bad-value"),
        ({"value": None}, "bad-value"),
        ({"value": [1, [2]]}, "bad-value"),
        ({"value": "x" * 5000}, "too-large"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else None,
)
def test_drops_are_recorded(call: dict[str, Any], reason: str) -> None:
    sound = {"name": "loss", "value": 1.0}
    records = drained(sound, {**sound, **call}, sound)
    assert [each.name for each in records if each.kind == "metric"] == ["loss", "loss"]
    assert [(each.name, each.value) for each in records if each.kind == "drop"] == [(reason, 1.0)]


def test_a_hanging_sink_does_not_delay_others_or_the_caller() -> None:
    hanging, good = HangingSink(), ListSink()
    with recording_into(hanging, good) as recording:
        recording.append("metric", "loss", value=1.0)
        assert hanging.entered.wait(DEADLINE_S)
        recording.append("metric", "loss", value=2.0)
        assert not recording.flush(1.0)
        eventually(lambda: [each.value for each in good.taken] == [1.0, 2.0], "the other sink has both")
        hanging.released.set()
        assert recording.flush(DEADLINE_S)
    assert hanging.taken == good.taken
