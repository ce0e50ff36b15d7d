"""Kinds of a job's time, with the names of ml-goodput-measurement; pure."""

from __future__ import annotations

from enum import Enum


class BadputType(Enum):
    """Kinds of unproductive time."""

    TPU_INITIALIZATION = 1
    TRAINING_PREP = 2
    PROGRAM_STARTUP = 3
    DATA_LOADING_SYNC = 4
    DATA_LOADING_ASYNC = 5
    """An overlay: it runs beside steps and is not part of any sum."""
    UNPRODUCTIVE_CHECKPOINT_SAVE_TIME = 6
    UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME = 7
    WASTED_PROGRESS_FROM_DISRUPTION = 8
    INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION = 9
    CUSTOM_BADPUT_EVENTS = 10
    OTHER = 11
    ELASTIC_SLICE_DOWN = 12
    ELASTIC_SCALE_UP = 13
    ELASTIC_REINITIALIZATION = 14

    __hash__ = object.__hash__  # members are equal only to themselves; Enum's own hash costs ten times as much


class GoodputType(Enum):
    """Kinds of productive time."""

    TOTAL = 1


class MetricType(Enum):
    """Keys of `get_job_goodput_details()`."""

    GOODPUT_TIME = "goodput_time"
    BADPUT_TIME = "badput_time"
    MAX_PRODUCTIVE_STEP = "max_productive_step"
    TOTAL_ELAPSED_TIME = "total_elapsed_time"
    DISRUPTION_COUNT = "disruption_count"
    STEP_TIME_DEVIATION = "step_time_deviation"
    IDEAL_STEP_TIME = "ideal_step_time"
    TOTAL_EXCLUDED_TIME = "total_excluded_time"


class IntervalMetricType(Enum):
    """Keys of `get_interval_metric_details()`."""

    INTERVAL_GOODPUT = "interval_goodput"
    INTERVAL_BADPUT = "interval_badput"
    INTERVAL_SIZE = "interval_size"


class MonitoringWindowType(Enum):
    """The time that a metric covers."""

    CUMULATIVE = "cumulative"
    INTERVAL = "interval"


ACTIVITY_EXCLUSION_LIST = ["DATA_LOADING_ASYNC"]
"""Names of buckets that run beside others and are not part of any sum."""
