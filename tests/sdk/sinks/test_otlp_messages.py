"""Every recorded number is one point; every other record is a log record."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks.otlp_messages import STEP, logs_request, metrics_request, resource_of
from support.records import origin, records

RESOURCE = resource_of(origin(), {})


@given(st.lists(records(), max_size=3))
def test_each_number_is_one_point_and_each_other_record_one_log(batch: list[Record]) -> None:
    request = metrics_request(RESOURCE, batch)
    points = [
        (metric.name, point.as_double)
        for each in (request.resource_metrics if request else ())
        for metric in each.scope_metrics[0].metrics
        for point in metric.gauge.data_points
        if point.WhichOneof("value") == "as_double"
    ]
    numbers = [
        (record.name, number)
        for record in batch
        if record.kind == "metric" and record.value is not None
        for number in (record.value if isinstance(record.value, tuple) else (record.value,))
    ]
    assert Counter(points) == Counter(numbers)
    logs = logs_request(RESOURCE, batch)
    steps = [log.event_name for each in (logs.resource_logs if logs else ()) for log in each.scope_logs[0].log_records]
    assert steps == [record.name for record in batch if record.kind not in {"metric", "heartbeat"}]


@given(st.floats(0, 4e9), st.integers(0, 2**40))
def test_points_have_the_time_and_the_step_of_their_record(t: float, step: int) -> None:
    request = metrics_request(RESOURCE, [Record("metric", t, "loss", math.nan, step=step)])
    assert request is not None
    loss, steps = request.resource_metrics[0].scope_metrics[0].metrics
    [point], [at] = loss.gauge.data_points, steps.gauge.data_points
    assert abs(point.time_unix_nano / 1e9 - t) <= 1e-6
    assert math.isnan(point.as_double)
    assert (steps.name, at.as_int, at.time_unix_nano) == (STEP, step, point.time_unix_nano)


def test_goodput_steps_are_not_sent() -> None:
    step = Record("event", 1.0, "goodput", payload={"step_count": 1})
    assert logs_request(RESOURCE, [step, Record("heartbeat", 1.0, "alive")]) is None


def test_lone_surrogates_and_huge_numbers_do_not_fail_a_batch() -> None:
    broken = Record("event", 1e30, "\ud800", step=2**80, labels={"\udfff": "\ud800"}, payload={"a": [1, None, 2**70]})
    assert logs_request(RESOURCE, [broken]) is not None
    assert metrics_request(RESOURCE, [Record("metric", -1.0, "\ud800", 1.0, step=-(2**80))]) is not None
