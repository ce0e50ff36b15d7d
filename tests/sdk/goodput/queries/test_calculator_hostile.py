"""For every log, each query has an answer that adds up, or raises one of its documented errors."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput import BadputType
from mldiagnostics.goodput_elastic import ElasticGoodputCalculator
from support.goodput.entries import JOB, T0, Entries, utc

KEYS = [
    *("job_start_time", "job_end_time", "step_start_time", "step_end_time", "step_count", "rank", "run_id", "attempt"),
    *("tpu_init_start_time", "tpu_init_end_time", "data_loading_start_time", "data_loading_end_time"),
    *("custom_badput_event_type", "custom_badput_event_start_time", "custom_badput_event_end_time"),
    *("elastic_wait_event_type", "elastic_wait_start_time", "elastic_wait_end_time", "elastic_reinit_start_time"),
    *("active_slices", "total_slices", "available_slices", "elastic_slice_counts_timestamp"),
    *("event_type", "step", "directory", "reached_preemption", "checkpoint_manager_start_time"),
    *("checkpoint_manager_blocking_start_time", "checkpoint_manager_blocking_duration_secs", "disruption_cause"),
]
moments = st.integers(-20, 120).map(lambda t: T0 + t)
values = st.one_of(
    moments,
    st.integers(0, 6),
    st.sampled_from(["save", "restore", "eval", "", "gs://b", "elastic_scale_up", "1735689601.0"]),
    st.sampled_from([None, True, math.nan, math.inf, -1.0, 1e300, 2**70, T0 * 1000, [], {}, {"a": [1]}]),
)
payloads: Any = st.dictionaries(st.sampled_from(KEYS), values, max_size=4).map(
    lambda fields: {"job_name": JOB, **fields}
)
sensible: Any = st.one_of(
    st.builds(lambda t: {"job_name": JOB, "job_start_time": t}, moments),
    st.builds(lambda t, n: {"job_name": JOB, "step_count": n, "step_start_time": t}, moments, st.integers(0, 6)),
)
garbage: Any = st.sampled_from([None, 3, "text", [], b"\xff", object()])


@given(st.lists(st.one_of(payloads, sensible, garbage), max_size=12))
def test_each_query_has_an_answer_or_a_documented_error(log: list[Any]) -> None:
    calculator = ElasticGoodputCalculator(JOB, "log", Entries(log), clock=lambda: T0 + 100)
    for ask in (
        lambda: calculator.get_job_goodput(include_badput_breakdown=True),
        lambda: calculator.get_job_goodput_interval(utc(20), utc(60)),
        lambda: calculator.get_job_goodput_with_exclusions([(utc(20), utc(60))], include_badput_breakdown=True),
    ):
        try:
            goodput, badput, *_ = ask()
        except ValueError:
            continue
        assert goodput + whole(badput) == 0.0 or math.isclose(goodput + whole(badput), 100.0)
    with suppress(ValueError):
        assert all(deviation >= 0.0 for deviation in calculator.get_step_deviation().values())
    assert calculator.get_job_goodput_details()["total_elapsed_time"] >= 0.0
    assert calculator.get_interval_metric_details(utc(20), utc(60))["interval_size"] == 40
    assert all(count > 0 for count in calculator.ignored.values())
    assert calculator.report(windows_s=[10]).cumulative.productive_s >= 0.0


def whole(breakdown: Any) -> float:
    return math.fsum(
        math.fsum(share.values()) if isinstance(share, dict) else share
        for bucket, share in breakdown.items()
        if bucket is not BadputType.DATA_LOADING_ASYNC
    )
