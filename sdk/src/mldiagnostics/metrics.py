"""`metrics.record(...)`, the call for training loops.

It costs a tuple and an append: values are inspected, converted and written in other threads. It never raises and never
waits. Records made before a run starts wait for it.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.buffer import PROCESS
from mldiagnostics.pipeline.drops import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime
    from typing import NoReturn

    from mldiagnostics.metric_types import MetricType

__all__ = ["metrics_recorder", "record", "record_metrics"]

_entries = PROCESS.entries
_append = PROCESS.append
_END_OF_TIME = float("inf")
_ITEM = ("metric_name", "value", "step", "labels", "timestamp")
"""Keys of an item of `record_metrics`."""


def record(
    metric_name: MetricType | str = "",
    value: Any = None,
    step: int | None = None,
    labels: Mapping[str, str] | None = None,
    record_on_all_hosts: bool = False,  # noqa: ARG001 - every process records, see `record_metrics`
    *surplus: NoReturn,
    timestamp: float | datetime | None = None,
    **unknown: NoReturn,
) -> None:
    """Record one value of a metric.

    An invalid value is dropped, reported once on the logger `mldiagnostics`, and counted. Unknown arguments are ignored
    with one warning. The function returns None and never raises.

    Args:
        metric_name: Name of the metric, a `MetricType` or any other string.
        value: A Python, numpy, JAX or torch number, or a list or 1-d array with one number per device. A string or dict
            becomes an event of that name. At most 4 KiB with the labels. Units: see `MetricType`.
        step: Number of the training step. Default: none.
        labels: Strings that distinguish several series of one metric.
        record_on_all_hosts: Accepted for programs written for google-cloud-mldiagnostics; every process records.
        timestamp: Unix time in seconds or a `datetime`. Default: now.

    Example:
        >>> from mldiagnostics import MetricType, metrics
        >>> metrics.record(MetricType.LOSS, 0.5, step=1)
        >>> metrics.record("accuracy", 0.9, step=1, labels={"split": "test"})
    """
    if (
        type(value) is float
        and labels is None
        and (type(step) is int or step is None)
        and (timestamp is None or (type(timestamp) is float and -_END_OF_TIME < timestamp < _END_OF_TIME))
        and len(_entries) < PROCESS.capacity
        and not unknown
        and not surplus
    ):
        _append((time() if timestamp is None else timestamp, "metric", metric_name, value, step, None, None, 0))
    else:
        if unknown or surplus:
            _warn_ignored(record, surplus, unknown)
        PROCESS.add("metric", metric_name, value=value, step=step, labels=labels, t=timestamp)


def record_metrics(
    metrics_data: Iterable[Mapping[str, Any]] = (),
    record_on_all_hosts: bool = False,  # noqa: ARG001 - see below
    step: int | None = None,
    *surplus: NoReturn,
    timestamp: float | datetime | None = None,
    **unknown: NoReturn,
) -> None:
    """Record several metrics with one time.

    An invalid item is dropped, reported once and counted; the others are recorded. The function returns None and never
    raises.

    Args:
        metrics_data: Dicts with `metric_name` and `value`, and optionally `step`, `labels` and `timestamp`; see
            `record`.
        record_on_all_hosts: Accepted for programs written for google-cloud-mldiagnostics and ignored: every process
            records, to files of its own and with its rank.
        step: Step of the items that have none.
        timestamp: Time of the items that have none, Unix seconds or a `datetime`. Default: now.

    Example:
        >>> from mldiagnostics import metrics
        >>> loss, mfu = {"metric_name": "loss", "value": 0.5}, {"metric_name": "mfu", "value": 41.0}
        >>> metrics.record_metrics([loss, mfu], step=1)
    """
    if unknown or surplus:
        _warn_ignored(record_metrics, surplus, unknown)
    now = time() if timestamp is None else timestamp
    try:
        for metric in metrics_data:
            _record_item(metric, step, now)
    except Exception as error:  # noqa: BLE001 - an argument of any type must not end the training
        PROCESS.drops.count("bad-call", detail=f"record_metrics: {shown(error)}")


def _record_item(metric: Mapping[str, Any], step: int | None, now: float | datetime) -> None:
    try:
        record(
            metric["metric_name"],
            metric["value"],
            metric.get("step", step),
            metric.get("labels"),
            timestamp=metric.get("timestamp", now),
        )
    except Exception as error:  # noqa: BLE001 - one invalid item must not cost the next ones
        PROCESS.drops.count("bad-call", detail=f"record_metrics: {_explain(metric, error)}")


def _explain(metric: object, error: Exception) -> str:
    """Return the problem of an item, with the key that was probably meant."""
    from mldiagnostics.text.suggest import closest  # noqa: PLC0415 - only after a mistake

    if isinstance(error, KeyError) and isinstance(metric, dict):
        missing = [key for key in ("metric_name", "value") if key not in metric]
        unknown_keys = [str(key) for key in metric if key not in _ITEM]
        meant = [f"; did you mean {match} by {key}?" for key in unknown_keys if (match := closest(key, missing))]
        return f"an item without {' and '.join(missing)}{''.join(meant)}"
    return f"an item of type {type(metric).__name__}: {shown(error)}"


def _warn_ignored(function: Callable[..., None], surplus: Collection[object], unknown: Collection[str]) -> None:
    from mldiagnostics.diagnostics import warn_ignored  # noqa: PLC0415 - an import alone needs no logging

    warn_ignored(f"metrics.{function.__name__}", function, surplus, unknown)


class _Recorder:
    """The functions of this module as methods, as `metrics_recorder` of Google's SDK."""

    record = staticmethod(record)
    record_metrics = staticmethod(record_metrics)


metrics_recorder = _Recorder()
