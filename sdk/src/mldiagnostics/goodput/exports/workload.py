"""The series of ml-goodput-measurement in Cloud Monitoring; pure.

Their types are `compute.googleapis.com/workload/…`. Names and labels are spelled as its dashboard expects, so
`window_type` is `cumulative` in some series and `CUMULATIVE` in others. The sink adds the labels `accelerator_type` and
`cluster_name` of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.exports.metrics import source
from mldiagnostics.goodput.exports.observe import (
    CumulativeObservation,
    MetricPoint,
    RollingObservation,
    StepDeviations,
    buckets,
    percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.goodput.exports.observe import Observation, WindowObservation


PREFIX = "compute.googleapis.com/workload/"
INTEGERS = frozenset({"disruptions", "max_productive_steps"})
"""Series of whole numbers (INT64); all others are DOUBLE."""

UNLABELLED = frozenset({"performance"})
"""Series without labels."""

_SO_FAR = {"window_type": "cumulative"}


def series(observation: Observation, *, goodput: bool = True, deviations: bool = True) -> Iterator[MetricPoint]:
    """Yield one point of each series of goodput, of step deviations, or of both."""
    if isinstance(observation, StepDeviations):
        if deviations and observation.deviation is not None:
            yield MetricPoint("step_time_deviation", observation.deviation / 1e6)
    elif goodput and isinstance(observation, CumulativeObservation):
        yield from _cumulative(observation)
    elif goodput and isinstance(observation, RollingObservation):
        for window in observation.windows:
            yield from _window(window)


def _cumulative(seen: CumulativeObservation) -> Iterator[MetricPoint]:
    account = seen.account
    yield MetricPoint("goodput_time", account.productive / 1e6, {"goodput_source": "TOTAL"})
    for bucket, spent in buckets(account):
        yield MetricPoint("badput_time", spent / 1e6, {"badput_source": source(bucket)})
    yield MetricPoint("disruptions", account.disruptions, _SO_FAR)
    yield MetricPoint("max_productive_steps", account.max_step or 0)
    yield MetricPoint("total_elapsed_time", account.elapsed / 1e6, _SO_FAR)
    if seen.deviation is not None:
        yield MetricPoint("step_time_deviation", seen.deviation / 1e6)
    if seen.ideal_step_time is not None:
        yield MetricPoint("performance", seen.ideal_step_time / 1e6)
    yield from _slices(seen.slices, "CUMULATIVE", "0")


def _window(window: WindowObservation) -> Iterator[MetricPoint]:
    account, size = window.account, {"rolling_window_size": str(window.seconds)}
    if not account.elapsed:  # the window is outside the run
        return
    yield MetricPoint("interval_goodput", percent(account.productive, account), {"goodput_source": "TOTAL", **size})
    for bucket, spent in buckets(account, window.known):
        yield MetricPoint("interval_badput", percent(spent, account), {"badput_source": source(bucket), **size})
    yield from _slices(window.slices, "INTERVAL", str(window.seconds))


def _slices(slices: tuple[float, float] | None, window_type: str, size: str) -> Iterator[MetricPoint]:
    labels = {"window_type": window_type, "rolling_window_size": size}
    for kind, share in zip(("stepping", "available"), slices or (), strict=False):
        yield MetricPoint(f"{kind}_slice_efficiency", share, labels)
