"""The curves of ml-goodput-measurement in TensorBoard; pure.

They are percentages by step, in `<directory>/goodput`. Rolling windows are not shown. The deviation of a step is
written once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.exports.observe import CumulativeObservation, MetricPoint, StepDeviations, buckets, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.goodput.account import Bucket
    from mldiagnostics.goodput.exports.observe import Observation


FOLDER = "goodput"
"""Directory of the event files below TensorBoard's directory."""


def curves(observation: Observation) -> Iterator[MetricPoint]:
    """Yield the points of an observation; deviations are seconds."""
    if isinstance(observation, StepDeviations):
        for step, deviation in zip(observation.steps, observation.deviations, strict=True):
            yield MetricPoint("step_deviation", deviation / 1e6, step=step)
    elif isinstance(observation, CumulativeObservation):
        account = observation.account
        step = account.max_step or 0
        yield MetricPoint("goodput/goodput", percent(account.productive, account), step=step)
        for bucket, spent in buckets(account):
            yield MetricPoint(f"badput/{_tag(bucket)}", percent(spent, account), step=step)
        yield MetricPoint("badput/data_loading_async", percent(account.overlay, account), step=step)


def without_badput(observation: Observation) -> Iterator[MetricPoint]:
    """Yield the points of an observation without badput."""
    return (point for point in curves(observation) if not point.name.startswith("badput/"))


def _tag(bucket: Bucket) -> str:
    name = bucket.bucket.name.lower()
    return f"{name}/{bucket.custom.lower()}" if bucket.bucket is BadputType.CUSTOM_BADPUT_EVENTS else name
