"""`metrics.record(...)`: the call that stands in the training loop.

It costs a tuple and an append: what has to be looked at, converted, formatted or written is so in other threads.
It never raises, never waits, and may come before a run exists: records wait for it.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.pipeline.buffer import PROCESS
from mldiagnostics.pipeline.drops import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
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

    `value` is a Python, numpy, JAX or torch number, a list or 1-d array with one number per device, or a text or dict,
    which becomes an event of that name. `timestamp` is Unix time in seconds or a `datetime`, by default now.
    A value that cannot be recorded is dropped, reported once on the logger `mldiagnostics`, and counted. Arguments that
    `record` does not have are ignored with one warning.
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
            _warn_unknown(unknown, surplus)
        PROCESS.add("metric", metric_name, value=value, step=step, labels=labels, t=timestamp)


def record_metrics(
    metrics_data: Iterable[Mapping[str, Any]] = (),
    record_on_all_hosts: bool = False,  # noqa: ARG001 - see below
    step: int | None = None,
    *surplus: NoReturn,
    timestamp: float | datetime | None = None,
    **unknown: NoReturn,
) -> None:
    """Record several metrics at one time: dicts with `metric_name`, `value` and optional `step`, `labels`, `timestamp`.

    `step` and `timestamp` are for the dicts that have none of their own. An item that cannot be recorded is dropped,
    reported once and counted; the others are recorded.

    `record_on_all_hosts` is accepted for programs written for google-cloud-mldiagnostics and changes nothing: there
    only process 0 records unless it is set, here every process does, to files of its own and with its rank.
    """
    if unknown or surplus:
        _warn_unknown(unknown, surplus, record_metrics)
    now = time() if timestamp is None else timestamp
    try:
        for metric in metrics_data:
            _record_item(metric, step, now)
    except Exception as error:  # noqa: BLE001 - whatever was passed here must not end the training
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
    except Exception as error:  # noqa: BLE001 - one bad item must not cost those behind it
        PROCESS.drops.count("bad-call", detail=f"record_metrics: {_explain(metric, error)}")


def _explain(metric: object, error: Exception) -> str:
    """Return what is wrong with an item, and which key was probably meant."""
    from mldiagnostics.text.suggest import closest  # noqa: PLC0415 - only after a mistake

    if isinstance(error, KeyError) and isinstance(metric, dict):
        missing = [key for key in ("metric_name", "value") if key not in metric]
        strangers = [str(key) for key in metric if key not in _ITEM]
        meant = [f"; did you mean {match} by {key}?" for key in strangers if (match := closest(key, missing))]
        return f"an item without {' and '.join(missing)}{''.join(meant)}"
    return f"an item of type {type(metric).__name__}: {shown(error)}"


def _warn_unknown(
    unknown: Mapping[str, object], surplus: tuple[object, ...], function: Callable[..., None] | None = None
) -> None:
    from mldiagnostics.diagnostics import warn_once  # noqa: PLC0415 - who only imports needs no logging
    from mldiagnostics.text.suggest import parameters, unknown_parameters  # noqa: PLC0415 - only after a mistake

    called = function or record
    name = f"metrics.{called.__name__}"
    if unknown:
        warn_once(f"arguments-{name}", unknown_parameters(name, unknown, parameters(called)))
    if surplus:
        warn_once(f"positions-{name}", f"{name}: too many positional arguments; the last {len(surplus)} is ignored")


class _Recorder:
    """The functions of this module as methods, for programs that import `metrics_recorder` of Google's SDK."""

    record = staticmethod(record)
    record_metrics = staticmethod(record_metrics)


metrics_recorder = _Recorder()
