"""`metrics.record(...)`: the call that stands in the training loop.

It costs a tuple and an append: what has to be looked at, converted, formatted or written is so in other threads.
It never raises, never waits, and may come before a run exists: records wait for it.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.buffer import PROCESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from mldiagnostics.metric_types import MetricType

__all__ = ["record", "record_metrics"]

_entries = PROCESS.entries
_append = PROCESS.append


def record(
    metric_name: MetricType | str,
    value: Any,
    step: int | None = None,
    labels: Mapping[str, str] | None = None,
    record_on_all_hosts: bool = False,  # noqa: ARG001 - every process records, see `record_metrics`
    *,
    timestamp: float | datetime | None = None,
) -> None:
    """Record one value of a metric.

    `value` is a Python, numpy, JAX or torch number, a list or 1-d array with one number per device, or a text or dict,
    which becomes an event of that name. `timestamp` is Unix time in seconds or a `datetime`, by default now.
    A value that cannot be recorded is dropped, told once on the logger `mldiagnostics`, and counted.
    """
    if (
        type(value) is float
        and labels is None
        and (type(step) is int or step is None)
        and (timestamp is None or type(timestamp) is float)
        and len(_entries) < PROCESS.capacity
    ):
        _append((time() if timestamp is None else timestamp, "metric", metric_name, value, step, None, None, 0))
    else:
        PROCESS.add("metric", metric_name, value=value, step=step, labels=labels, t=timestamp)


def record_metrics(
    metrics_data: Iterable[Mapping[str, Any]],
    record_on_all_hosts: bool = False,  # noqa: ARG001 - see below
    step: int | None = None,
    *,
    timestamp: float | datetime | None = None,
) -> None:
    """Record several metrics at one time: dicts with `metric_name`, `value` and optional `step`, `labels`, `timestamp`.

    `step` and `timestamp` are for the dicts that have none of their own.

    `record_on_all_hosts` is accepted for programs written for google-cloud-mldiagnostics and changes nothing: there
    only process 0 records unless it is set, here every process does, to files of its own and with its rank.
    """
    now = time() if timestamp is None else timestamp
    try:
        for metric in metrics_data:
            record(
                metric["metric_name"],
                metric["value"],
                metric.get("step", step),
                metric.get("labels"),
                timestamp=metric.get("timestamp", now),
            )
    except Exception as error:  # noqa: BLE001 - whatever was passed here must not end the training
        PROCESS.drops.count("bad-call", detail=f"record_metrics: {error!r}")
