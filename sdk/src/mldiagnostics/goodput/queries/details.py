"""The dictionaries that the calculators' detail queries return; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from mldiagnostics.goodput.buckets import GoodputType
from mldiagnostics.goodput.queries.results import UnproductiveTimeDict  # noqa: TC001 - a public type has it

if TYPE_CHECKING:
    from mldiagnostics.goodput.queries.results import GoodputResult
    from mldiagnostics.goodput.queries.run_queries import StepSeries


class WorkloadMetricDetails(TypedDict):
    """Result of `get_job_goodput_details()`, in seconds, steps and counts."""

    goodput_time: dict[GoodputType, float]
    badput_time: UnproductiveTimeDict
    max_productive_step: int
    total_elapsed_time: float
    disruption_count: int
    step_time_deviation: dict[int, float]
    ideal_step_time: float
    total_excluded_time: float


class IntervalWorkloadMetricDetails(TypedDict):
    """Result of `get_interval_metric_details()`, in per cent and whole seconds."""

    interval_goodput: dict[GoodputType, float]
    interval_badput: UnproductiveTimeDict
    interval_size: int


class ElasticWorkloadMetricDetails(WorkloadMetricDetails, total=False):
    """Details of an elastic job, with shares (0-1) of stepping and available slices."""

    stepping_slice_efficiency: float
    available_slice_efficiency: float


class ElasticIntervalWorkloadMetricDetails(IntervalWorkloadMetricDetails, total=False):
    """Details of a window of an elastic job."""

    stepping_slice_efficiency: float
    available_slice_efficiency: float


def job_details(result: GoodputResult, steps: StepSeries, configured_ideal: float | None) -> WorkloadMetricDetails:
    """Return a query of the whole job in seconds, with its step deviations.

    Deviations are from the configured ideal step time, else from the computed one.
    """
    ideal = steps.ideal if configured_ideal is None else configured_ideal
    return {
        "goodput_time": {GoodputType.TOTAL: result.productive},
        "badput_time": result.unproductive,
        "max_productive_step": result.max_step,
        "total_elapsed_time": result.elapsed,
        "disruption_count": result.disruptions,
        "step_time_deviation": {} if ideal is None else steps.deviations(ideal),
        "ideal_step_time": ideal or 0.0,
        "total_excluded_time": result.excluded,
    }


def empty_details() -> WorkloadMetricDetails:
    """Return the details before any query: empty maps and zeros."""
    return {
        "goodput_time": {},
        "badput_time": {},
        "max_productive_step": 0,
        "total_elapsed_time": 0.0,
        "disruption_count": 0,
        "step_time_deviation": {},
        "ideal_step_time": 0.0,
        "total_excluded_time": 0.0,
    }
