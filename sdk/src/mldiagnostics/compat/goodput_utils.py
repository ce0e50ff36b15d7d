"""Names of `goodput_utils` in ml-goodput-measurement."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.buckets import (
    ACTIVITY_EXCLUSION_LIST,
    BadputType,
    GoodputType,
    IntervalMetricType,
    MetricType,
    MonitoringWindowType,
)
from mldiagnostics.goodput.google_cloud import (
    MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING,
    GCPOptions,
    get_accelerator_type,
    get_cluster_name,
    get_gcp_metadata,
    get_gcp_project_id,
    get_node_zone,
)
from mldiagnostics.goodput.queries.details import (
    ElasticIntervalWorkloadMetricDetails,
    ElasticWorkloadMetricDetails,
    IntervalWorkloadMetricDetails,
    WorkloadMetricDetails,
)
from mldiagnostics.goodput.queries.ideal import (
    compute_ideal_step_time,
    compute_percentile,
    compute_step_deviation_from_baseline,
    get_anomalous_and_normal_step_times,
    get_extra_time_from_anomalous_steps,
)
from mldiagnostics.goodput.queries.results import UnproductiveTimeDict

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ACTIVITY_EXCLUSION_LIST",
    "MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING",
    "BadputType",
    "ElasticIntervalWorkloadMetricDetails",
    "ElasticWorkloadMetricDetails",
    "GCPOptions",
    "GoodputInfo",
    "GoodputType",
    "IntervalMetricType",
    "IntervalWorkloadMetricDetails",
    "MetricType",
    "MonitoringWindowType",
    "StepInfo",
    "UnproductiveTimeDict",
    "WorkloadMetricDetails",
    "compute_ideal_step_time",
    "compute_percentile",
    "compute_step_deviation_from_baseline",
    "get_accelerator_type",
    "get_anomalous_and_normal_step_times",
    "get_cluster_name",
    "get_extra_time_from_anomalous_steps",
    "get_gcp_metadata",
    "get_gcp_project_id",
    "get_node_zone",
    "get_timestamp_from_log_entry",
]

_EVENT_TIMES = (
    "job_start_time",
    "job_end_time",
    "step_start_time",
    "step_end_time",
    "tpu_init_start_time",
    "tpu_init_end_time",
    "training_prep_start_time",
    "training_prep_end_time",
    "data_loading_start_time",
    "data_loading_end_time",
    "custom_badput_event_start_time",
    "custom_badput_event_end_time",
    "elastic_wait_start_time",
    "elastic_wait_end_time",
    "elastic_reinit_start_time",
    "elastic_reinit_end_time",
    "elastic_slice_counts_timestamp",
    "checkpoint_manager_blocking_start_time",
    "checkpoint_manager_start_time",
    "checkpointer_blocking_start_time",
    "checkpointer_start_time",
)
"""Keys of a payload that hold the time of its event, in order of preference."""


@dataclass
class GoodputInfo:
    """Result of a query of the whole job; times in seconds."""

    total_productive_time: float = 0.0
    total_elapsed_time: float = 0.0
    total_unproductive_time: UnproductiveTimeDict | None = None
    max_productive_step: int = 0
    last_recorded_step: int = 0
    last_updated_timestamp: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    number_of_disruptions: int = 0
    total_excluded_time: float = 0.0


@dataclass
class StepInfo:
    """The ideal step time and each step's deviation from it, in seconds."""

    ideal_step_time: float
    step_deviations: dict[int, float]


def get_timestamp_from_log_entry(entry: Mapping[str, Any]) -> datetime | None:
    """Return the time of a payload's event (UTC), None if the payload has none."""
    preferred = [key for key in _EVENT_TIMES if key in entry]
    others = (key for key in entry if "time" in key and "_secs" not in key and not key.endswith("_sec"))
    for key in (*preferred, *others):
        value = entry[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return datetime.fromtimestamp(value, timezone.utc)
            except (ValueError, OverflowError, OSError):
                continue
    return None
