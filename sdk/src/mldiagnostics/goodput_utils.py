"""The module of this name of ml-goodput-measurement: its enumerations, options and small functions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from mldiagnostics.goodput.buckets import (
    ACTIVITY_EXCLUSION_LIST,
    BadputType,
    GoodputType,
    IntervalMetricType,
    MetricType,
    MonitoringWindowType,
)
from mldiagnostics.goodput.ideal import (
    compute_ideal_step_time,
    compute_percentile,
    compute_step_deviation_from_baseline,
    get_anomalous_and_normal_step_times,
    get_extra_time_from_anomalous_steps,
)

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

UnproductiveTimeDict: TypeAlias = "dict[BadputType, float | dict[str, float]]"

MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING = {
    "tpu7x": "TPU-7x",
    "ct6e": "TPU-v6e",
    "ct5p": "TPU-v5p",
    "ct5lp": "TPU-v5e",
    "ct5l": "TPU-v5e",
    "ct4p": "TPU-v4p",
    "ct3p": "TPU-v3",
    "ct3": "TPU-v3",
    "tpu-v2": "TPU-v2",
    "tpu": "TPU",
    "a3-edgegpu": "NVIDIA-H100",
    "a3-highgpu": "NVIDIA-H100",
    "a3-megagpu": "NVIDIA-H100",
    "a3-ultragpu": "NVIDIA-H200",
    "a2": "NVIDIA-A100",
    "gpu": "GPU",
}
"""Part of a machine type's name -> what it accelerates with; the first that fits counts."""

_LOOK_UP_S = 1.0
"""Longest wait for the metadata server, whatever a caller allows."""

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
"""Keys of a payload that say when it happened, best first."""


@dataclass
class GCPOptions:
    """What is sent to Cloud Monitoring, and under which labels; None is looked up."""

    project_id: str | None = None
    location: str | None = None
    replica_id: str = "0"
    acc_type: str | None = None
    cluster_name: str | None = None
    enable_gcp_goodput_metrics: bool = True
    enable_gcp_step_deviation_metrics: bool = True


@dataclass
class GoodputInfo:
    """What a query found, in seconds."""

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
    """The ideal step time and by how much each step is off it, in seconds."""

    ideal_step_time: float
    step_deviations: dict[int, float]


class WorkloadMetricDetails(TypedDict):
    """What `get_job_goodput_details()` returns; seconds, steps and counts."""

    goodput_time: dict[GoodputType, float]
    badput_time: UnproductiveTimeDict
    max_productive_step: int
    total_elapsed_time: float
    disruption_count: int
    step_time_deviation: dict[int, float]
    ideal_step_time: float
    total_excluded_time: float


class IntervalWorkloadMetricDetails(TypedDict):
    """What `get_interval_metric_details()` returns; percentages, and the size in whole seconds."""

    interval_goodput: dict[GoodputType, float]
    interval_badput: UnproductiveTimeDict
    interval_size: int


class ElasticWorkloadMetricDetails(WorkloadMetricDetails, total=False):
    """The same of an elastic job: shares (0-1) of its slices that step, and that could."""

    stepping_slice_efficiency: float
    available_slice_efficiency: float


class ElasticIntervalWorkloadMetricDetails(IntervalWorkloadMetricDetails, total=False):
    """The same of a window of an elastic job."""

    stepping_slice_efficiency: float
    available_slice_efficiency: float


def get_timestamp_from_log_entry(entry: Mapping[str, Any]) -> datetime | None:
    """Return when the event of a payload happened (UTC), None if it does not say so."""
    known = [key for key in _EVENT_TIMES if key in entry]
    for key in (*known, *(key for key in entry if "time" in key and "_secs" not in key and not key.endswith("_sec"))):
        value = entry[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return datetime.fromtimestamp(value, timezone.utc)
            except (ValueError, OverflowError, OSError):
                continue
    return None


def get_gcp_metadata(category: str, attribute: str, timeout: float = 5, retries: int = 3) -> str | None:  # noqa: ARG001
    """Return `<category>/<attribute>` of the metadata server, None if there is no answer within a second.

    `timeout` (seconds) may only shorten that. `retries` is accepted and there are none: a machine that is not on
    Google Cloud would wait for all of them.
    """
    from mldiagnostics.cloud import metadata  # noqa: PLC0415 - the options alone do without

    try:
        return metadata(f"{category}/{attribute}", env=os.environ, timeout_s=min(timeout, _LOOK_UP_S))
    except Exception:  # noqa: BLE001 - these look-ups are asked by monitors, which must not fail for them
        return None


def get_gcp_project_id() -> str | None:
    """Return the project's id: from the environment, gcloud or the metadata server; None if nobody knows."""
    from mldiagnostics.cloud import CloudEnvironment  # noqa: PLC0415 - the options alone do without

    return CloudEnvironment(env=os.environ).project(_LOOK_UP_S)


def get_node_zone() -> str | None:
    """Return the zone of this machine, like `us-east5-b`; None if nobody knows."""
    zone = get_gcp_metadata("instance", "zone")
    return zone.rpartition("/")[2] or None if zone else None


def get_accelerator_type() -> str:
    """Return what this machine accelerates with, by the name of its type; `UNKNOWN` if nobody knows."""
    machine = (get_gcp_metadata("instance", "machine-type") or "").rpartition("/")[2].lower()
    fitting = (kind for part, kind in MACHINE_TYPE_TO_ACCELERATOR_TYPE_MAPPING.items() if part in machine)
    return next(fitting, "UNKNOWN")


def get_cluster_name() -> str | None:
    """Return the name of the GKE cluster that this machine is in; None if nobody knows."""
    return get_gcp_metadata("instance", "attributes/cluster-name")
