"""Goodput metrics for Prometheus, OpenTelemetry and record files; pure.

`python -m mldiagnostics.goodput.exports.metrics` prints docs/reference/goodput-metrics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.goodput.exports.observe import (
    CumulativeObservation,
    MetricPoint,
    RollingObservation,
    buckets,
    percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.goodput.account import Bucket
    from mldiagnostics.goodput.exports.observe import Observation, WindowObservation


REPORT = "goodput_report"
"""Name of the event with the whole report, as `mldiagnostics.goodput.report.as_json` returns it."""


class MetricDefinition(NamedTuple):
    """Documentation of one metric."""

    name: str
    labels: tuple[str, ...]
    meaning: str


METRICS = (
    MetricDefinition("goodput_percent", (), "Productive time of the job so far, in percent of its elapsed time."),
    MetricDefinition("goodput_productive_seconds", (), "Productive time of the job so far."),
    MetricDefinition("goodput_elapsed_seconds", (), "Elapsed time of the job so far."),
    MetricDefinition("badput_seconds", ("source",), "Time of the job so far in one bucket of badput."),
    MetricDefinition(
        "goodput_data_loading_async_seconds", (), "Data loading in parallel with steps; not part of any sum."
    ),
    MetricDefinition("goodput_disruptions", (), "Disruptions of the job so far."),
    MetricDefinition("goodput_max_productive_step", (), "Highest step that is done and not lost."),
    MetricDefinition("goodput_ideal_step_seconds", (), "Ideal step time: the mean of the durations without outliers."),
    MetricDefinition(
        "goodput_step_deviation_seconds", (), "Deviation of the last steps from the ideal step time (90th percentile)."
    ),
    MetricDefinition(
        "goodput_slice_efficiency",
        ("kind",),
        "Mean share (0-1) of the slices of an elastic job, by `kind`: `stepping` or `available`.",
    ),
    MetricDefinition(
        "goodput_window_percent", ("window",), "Productive time in the last `window` seconds, in percent."
    ),
    MetricDefinition(
        "badput_window_percent",
        ("window", "source"),
        "Time of one bucket of badput in the last `window` seconds, in percent.",
    ),
    MetricDefinition(
        "goodput_window_slice_efficiency",
        ("window", "kind"),
        "Mean share (0-1) of the slices of an elastic job in the last `window` seconds.",
    ),
)


def metrics(observation: Observation) -> Iterator[MetricPoint]:
    """Yield the points of an observation; deviations of single steps are left out."""
    if isinstance(observation, CumulativeObservation):
        yield from _cumulative(observation)
    elif isinstance(observation, RollingObservation):
        for window in observation.windows:
            yield from _window(window)
    elif observation.deviation is not None:
        yield MetricPoint("goodput_step_deviation_seconds", observation.deviation / 1e6)


def source(bucket: Bucket) -> str:
    """Return a bucket's name; `CUSTOM_BADPUT_EVENTS.<TYPE>` for custom events."""
    return f"{bucket.bucket.name}.{bucket.custom}" if bucket.custom else bucket.bucket.name


def _cumulative(seen: CumulativeObservation) -> Iterator[MetricPoint]:
    account = seen.account
    step = account.last_step
    yield MetricPoint("goodput_percent", percent(account.productive, account), step=step)
    yield MetricPoint("goodput_productive_seconds", account.productive / 1e6, step=step)
    yield MetricPoint("goodput_elapsed_seconds", account.elapsed / 1e6, step=step)
    for bucket, spent in buckets(account):
        yield MetricPoint("badput_seconds", spent / 1e6, {"source": source(bucket)}, step)
    yield MetricPoint("goodput_data_loading_async_seconds", account.overlay / 1e6, step=step)
    yield MetricPoint("goodput_disruptions", account.disruptions, step=step)
    if account.max_step is not None:
        yield MetricPoint("goodput_max_productive_step", account.max_step, step=step)
    if seen.ideal_step_time is not None:
        yield MetricPoint("goodput_ideal_step_seconds", seen.ideal_step_time / 1e6, step=step)
    if seen.deviation is not None:
        yield MetricPoint("goodput_step_deviation_seconds", seen.deviation / 1e6, step=step)
    yield from _slices("goodput_slice_efficiency", seen.slices, {})


def _window(window: WindowObservation) -> Iterator[MetricPoint]:
    account, labels = window.account, {"window": str(window.seconds)}
    if not account.elapsed:  # the window is outside the run
        return
    yield MetricPoint("goodput_window_percent", percent(account.productive, account), labels)
    for bucket, spent in buckets(account, window.known):
        yield MetricPoint("badput_window_percent", percent(spent, account), {**labels, "source": source(bucket)})
    yield from _slices("goodput_window_slice_efficiency", window.slices, labels)


def _slices(name: str, slices: tuple[float, float] | None, labels: dict[str, str]) -> Iterator[MetricPoint]:
    for kind, share in zip(("stepping", "available"), slices or (), strict=False):
        yield MetricPoint(name, share, {**labels, "kind": kind})


def reference() -> str:
    """Return the page docs/reference/goodput-metrics.md."""
    rows = [
        f"| `{metric.name}` | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.meaning} |"
        for metric in METRICS
    ]
    head = (
        "# Goodput metrics",
        "",
        "Written by `python -m mldiagnostics.goodput.exports.metrics`; do not edit. A `GoodputMonitor` writes these",
        "metrics to the sinks of `exports=` or `MLDIAG_GOODPUT_EXPORTS`. In Prometheus their names start with `ml_`.",
        f"Sinks for events also receive `{REPORT}` with each upload of the whole job: the report with the last",
        "attempts and disruptions.",
        "",
        "| metric | labels | meaning |",
        "|---|---|---|",
    )
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - prints the page
