"""Goodput of jobs, with the names of ml-goodput-measurement.

    from mldiagnostics import goodput, monitoring

`GoodputRecorder` writes what happens to a job into a log, `GoodputCalculator` reads the log and divides the job's time.
Nothing loads before it is used: a training process that only records loads only the recorder.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.compat.checkpoint_badput_calculator import CheckpointBadputCalculator, CheckpointLoggerOptions
    from mldiagnostics.compat.goodput_cache import GoodputCache
    from mldiagnostics.compat.goodput_utils import GoodputInfo, StepInfo, get_timestamp_from_log_entry
    from mldiagnostics.goodput.buckets import BadputType, GoodputType, IntervalMetricType, MetricType
    from mldiagnostics.goodput.queries.calculator import GoodputCalculator
    from mldiagnostics.goodput.queries.details import IntervalWorkloadMetricDetails, WorkloadMetricDetails
    from mldiagnostics.goodput.queries.ideal import compute_ideal_step_time, get_extra_time_from_anomalous_steps
    from mldiagnostics.goodput.queries.results import UnproductiveTimeDict
    from mldiagnostics.goodput.recording.recorder import GoodputRecorder

__all__ = [
    "BadputType",
    "CheckpointBadputCalculator",
    "CheckpointLoggerOptions",
    "GoodputCache",
    "GoodputCalculator",
    "GoodputInfo",
    "GoodputRecorder",
    "GoodputType",
    "IntervalMetricType",
    "IntervalWorkloadMetricDetails",
    "MetricType",
    "StepInfo",
    "UnproductiveTimeDict",
    "WorkloadMetricDetails",
    "compute_ideal_step_time",
    "get_extra_time_from_anomalous_steps",
    "get_timestamp_from_log_entry",
]

_HOMES = {
    "BadputType": "goodput.buckets",
    "CheckpointBadputCalculator": "compat.checkpoint_badput_calculator",
    "CheckpointLoggerOptions": "compat.checkpoint_badput_calculator",
    "GoodputCache": "compat.goodput_cache",
    "GoodputCalculator": "goodput.queries.calculator",
    "GoodputInfo": "compat.goodput_utils",
    "GoodputRecorder": "goodput.recording.recorder",
    "GoodputType": "goodput.buckets",
    "IntervalMetricType": "goodput.buckets",
    "IntervalWorkloadMetricDetails": "goodput.queries.details",
    "MetricType": "goodput.buckets",
    "StepInfo": "compat.goodput_utils",
    "UnproductiveTimeDict": "goodput.queries.results",
    "WorkloadMetricDetails": "goodput.queries.details",
    "compute_ideal_step_time": "goodput.queries.ideal",
    "get_extra_time_from_anomalous_steps": "goodput.queries.ideal",
    "get_timestamp_from_log_entry": "compat.goodput_utils",
}
"""Name -> the module below `mldiagnostics` that has it."""


def __getattr__(name: str) -> object:
    if name == "_CloudLogger":  # by which programs pass a log around
        return import_module("mldiagnostics.goodput.recording.named_log").NamedLog
    if name in _HOMES:
        return getattr(import_module(f"mldiagnostics.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
