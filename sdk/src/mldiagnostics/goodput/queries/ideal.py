"""The ideal step time, and deviations from it; pure.

The ideal step time is the mean of the steps that are at most three median absolute deviations above the median. All
durations are seconds.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from mldiagnostics.goodput.buckets import MonitoringWindowType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


SHORTEST = 1.0
"""Steps below this many seconds do hardly any work; they do not count if they are the minority."""


def compute_ideal_step_time(step_times: Sequence[float]) -> float | None:
    """Return the ideal step time, None without steps.

    Steps below one second count only where they are at least half of all steps.
    """
    _, normal = get_anomalous_and_normal_step_times(_long_enough(step_times))
    return _mean(normal) if normal else None


def get_anomalous_and_normal_step_times(step_times: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the values above median + 3 x median absolute deviation, and the others."""
    limit = _outlier_limit(step_times)
    return [x for x in step_times if x > limit], [x for x in step_times if x <= limit]


def get_extra_time_from_anomalous_steps(step_times: Sequence[float]) -> float:
    """Return the seconds by which outliers exceed as many normal steps."""
    anomalous, normal = get_anomalous_and_normal_step_times(step_times)
    return sum(anomalous) - len(anomalous) * _mean(normal) if anomalous else 0.0


def compute_percentile(values: Sequence[float], percentile: float) -> float:
    """Return a percentile (0-100), interpolated linearly; 0.0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    position = (len(ordered) - 1) * percentile / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def compute_step_deviation_from_baseline(
    step_time_deviation: Mapping[int, float],
    mode: MonitoringWindowType = MonitoringWindowType.CUMULATIVE,
    recent_window_size: int = 100,
    baseline_window_size: int = 1000,
    spike_percentile: float = 90,
) -> float:
    """Return one number for the deviations of all steps, in seconds.

    With fewer than `recent_window_size` steps, it is the mean of all. Otherwise it is the `spike_percentile` of the
    most recent steps. With `recent_window_size + baseline_window_size` steps or more, the median of the steps before
    the recent ones is subtracted, unless `mode` is INTERVAL.
    """
    deviations = [abs(deviation) for deviation in step_time_deviation.values()]
    if len(deviations) < recent_window_size:
        return _mean(deviations) if deviations else 0.0
    recent = len(deviations) - recent_window_size
    spike = compute_percentile(deviations[recent:], spike_percentile)
    if mode is MonitoringWindowType.INTERVAL or recent < baseline_window_size:
        return spike
    baseline = deviations[recent - baseline_window_size : recent]
    return spike - (_median(baseline) if baseline else 0.0)


def _long_enough(step_times: Sequence[float]) -> Sequence[float]:
    long = [x for x in step_times if x >= SHORTEST]
    return long if 2 * len(long) > len(step_times) else step_times


def _outlier_limit(step_times: Sequence[float]) -> float:
    if not step_times:
        return 0.0
    middle = _median(step_times)
    return middle + 3 * _median([abs(x - middle) for x in step_times])


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _median(values: Sequence[float]) -> float:
    """Return the median, without `statistics`, which loads slowly."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
