"""What Prometheus, OpenTelemetry and files of records are told, under names of our own; pure.

python -m mldiagnostics.goodput.exports.metrics    print docs/reference/goodput-metrics.md
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

__all__ = ["METRICS", "REPORT", "MetricDefinition", "metrics"]

REPORT = "goodput_report"
"""Name of the event whose payload is the whole report, as `mldiagnostics.goodput.report.as_json` makes it."""


class MetricDefinition(NamedTuple):
    """One metric, for people."""

    name: str
    labels: tuple[str, ...]
    meaning: str


METRICS = (
    MetricDefinition("goodput_percent", (), "Productive time of the job so far, in percent of its elapsed time."),
    MetricDefinition("goodput_productive_seconds", (), "Productive time of the job so far."),
    MetricDefinition("goodput_elapsed_seconds", (), "Elapsed time of the job so far."),
    MetricDefinition("badput_seconds", ("source",), "Time of the job so far that went into one bucket of badput."),
    MetricDefinition("goodput_data_loading_async_seconds", (), "Data loading that ran beside steps; it is in no sum."),
    MetricDefinition("goodput_disruptions", (), "Disruptions of the job so far."),
    MetricDefinition("goodput_max_productive_step", (), "Highest step that is done and not lost."),
    MetricDefinition("goodput_ideal_step_seconds", (), "What a step takes when nothing is wrong."),
    MetricDefinition(
        "goodput_step_deviation_seconds", (), "By how much the last steps are off the ideal (90th percentile)."
    ),
    MetricDefinition(
        "goodput_slice_efficiency", ("kind",), "Share (0-1) of an elastic job's slices: `stepping`, `available`."
    ),
    MetricDefinition(
        "goodput_window_percent", ("window",), "Productive time of the last `window` seconds, in percent."
    ),
    MetricDefinition(
        "badput_window_percent", ("window", "source"), "One bucket of badput in the last `window` seconds."
    ),
    MetricDefinition(
        "goodput_window_slice_efficiency", ("window", "kind"), "Slice efficiency of the last `window` seconds."
    ),
)


def metrics(observation: Observation) -> Iterator[MetricPoint]:
    """Yield the points of an observation; rates of single steps are in no metric, the figure for all of them is."""
    if isinstance(observation, CumulativeObservation):
        yield from _cumulative(observation)
    elif isinstance(observation, RollingObservation):
        for window in observation.windows:
            yield from _window(window)
    elif observation.deviation is not None:
        yield MetricPoint("goodput_step_deviation_seconds", observation.deviation / 1e6)


def source(bucket: Bucket) -> str:
    """Return a bucket's name, `CUSTOM_BADPUT_EVENTS.<TYPE>` for a type of custom events."""
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
        "# Metrics of goodput",
        "",
        "Written by `python -m mldiagnostics.goodput.exports.metrics`; do not edit. A `GoodputMonitor` tells these to",
        "the sinks that `exports=` or `MLDIAG_GOODPUT_EXPORTS` names. Prometheus shows them with `ml_` before a name.",
        f"Sinks that take events get `{REPORT}` with each upload of the whole job: the report, of attempts and",
        "disruptions the last ones.",
        "",
        "| metric | labels | meaning |",
        "|---|---|---|",
    )
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - that is its purpose
