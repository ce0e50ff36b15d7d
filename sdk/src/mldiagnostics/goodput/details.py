"""Types of the dictionaries that the calculators' detail queries return; pure."""

from __future__ import annotations

from typing import TypeAlias, TypedDict

from mldiagnostics.goodput.buckets import BadputType, GoodputType  # noqa: TC001 - typing.get_type_hints resolves them

__all__ = [
    "ElasticIntervalWorkloadMetricDetails",
    "ElasticWorkloadMetricDetails",
    "IntervalWorkloadMetricDetails",
    "UnproductiveTimeDict",
    "WorkloadMetricDetails",
]

UnproductiveTimeDict: TypeAlias = "dict[BadputType, float | dict[str, float]]"


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
    """Result of `get_interval_metric_details()`: percentages, and the size in whole seconds."""

    interval_goodput: dict[GoodputType, float]
    interval_badput: UnproductiveTimeDict
    interval_size: int


class ElasticWorkloadMetricDetails(WorkloadMetricDetails, total=False):
    """The same of an elastic job, with the shares (0-1) of its slices that step and that are available."""

    stepping_slice_efficiency: float
    available_slice_efficiency: float


class ElasticIntervalWorkloadMetricDetails(IntervalWorkloadMetricDetails, total=False):
    """The same of a window of an elastic job."""

    stepping_slice_efficiency: float
    available_slice_efficiency: float
