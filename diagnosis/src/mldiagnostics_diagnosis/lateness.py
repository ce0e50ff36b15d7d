"""Delay of each host at the collectives of each step. Pure.

All hosts leave a collective together, so a host that waits less than the others arrived later, by the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


WARNING = 0.1
"""Share of the step without the delay from which a delay counts."""
CRITICAL = 0.2
"""Share of the step from which a delay is critical."""
FEWEST_LATE_STEPS = 5
USUAL = 0.6
"""A host that is late in this share of the steps is late as a rule."""
SELDOM = 0.55
"""A host that is late in at most this share of the steps is late now and then."""
OWN = 0.75
"""A host that is late now and then must cause this share of all delays."""


@dataclass(frozen=True, slots=True)
class LateHost:
    """A host that the others wait for."""

    index: int
    steps: tuple[int, ...]
    """Places of the steps in which it is late."""
    delay_s: float
    """Mean of its delays over all steps."""


def delays(waits: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the delay of each host in each step, in seconds.

    It is the median wait of the others above the host's own.

    Args:
        waits: Time in collectives, by host and step.
    """
    by_step = [_behind_others(each) for each in zip(*waits, strict=True)]
    return [list(series) for series in zip(*by_step, strict=True)]


def late_hosts(behind: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[LateHost]:
    """Return the hosts that are late repeatedly, the latest first.

    None if they are most of the hosts.

    Args:
        behind: Delays by host and step.
        seconds: Time of each step.
    """
    late = [tuple(step for step, delay in enumerate(series) if is_late(delay, seconds[step])) for series in behind]
    all_delays = sum(series[step] for series, steps in zip(behind, late, strict=True) for step in steps)
    step_s = median(seconds)
    hosts = []
    for index, steps in enumerate(late):
        series, long = behind[index], _long(behind[index], steps)
        if len(steps) >= FEWEST_LATE_STEPS and _is_late_as_a_rule(series, steps, step_s):
            hosts.append(LateHost(index, steps, _cost(series, steps)))
        elif len(long) >= FEWEST_LATE_STEPS and _is_late_at_times(series, long, sum(seconds), all_delays):
            hosts.append(LateHost(index, long, _cost(series, long)))
    if len(hosts) * 2 > len(behind):
        return []
    return sorted(hosts, key=lambda host: (-host.delay_s, host.index))


def is_late(delay_s: float, step_s: float) -> bool:
    """Return whether a step would be shorter by a tenth of its rest without the delay."""
    return delay_s >= WARNING * max(step_s - delay_s, 0.0) and delay_s > 0


def is_steady(series: Sequence[float]) -> bool:
    """Return whether delays have one cause.

    Three quarters of them are at least half of the median then.

    Other work on a machine delays a host too, but by another time in each step.
    """
    return sorted(series)[len(series) // 4] >= median(series) / 2


def _behind_others(waits: Sequence[float]) -> list[float]:
    """Return by how much each wait is below the median of the others."""
    ordered = sorted(waits)
    index_of = {wait: index for index, wait in enumerate(ordered)}
    return [_median_without(ordered, index_of[wait]) - wait for wait in waits]


def _median_without(ordered: Sequence[float], index: int) -> float:
    """Return the median of sorted values without one of them."""
    number = len(ordered) - 1

    def value(position: int) -> float:
        return ordered[position if position < index else position + 1]

    return (value((number - 1) // 2) + value(number // 2)) / 2


def _is_late_as_a_rule(series: Sequence[float], steps: Sequence[int], step_s: float) -> bool:
    return len(steps) >= USUAL * len(series) and is_late(median(series), step_s) and is_steady(series)


def _long(series: Sequence[float], steps: Sequence[int]) -> tuple[int, ...]:
    """Return the late steps whose delay is at least half of the longest one.

    The others are noise beside them.
    """
    longest = max((series[step] for step in steps), default=0.0)
    return tuple(step for step in steps if series[step] * 2 >= longest)


def _is_late_at_times(series: Sequence[float], steps: Sequence[int], total_s: float, all_delays: float) -> bool:
    """Return whether a host is late in single steps.

    Other work on its machine makes several in a row late.
    """
    weight = sum(series[step] for step in steps)
    in_a_row = sum(after == step + 1 for step, after in pairwise(steps))
    return (
        len(steps) <= SELDOM * len(series)
        and is_late(weight, total_s)
        and weight >= OWN * all_delays
        and in_a_row * 2 < len(steps)
    )


def _cost(series: Sequence[float], steps: Sequence[int]) -> float:
    """Return the delay per step.

    Of a host that is late as a rule it is the median, so that single spikes do not count.
    """
    if len(steps) >= USUAL * len(series):
        return median(series)
    return fmean([series[step] for step in steps]) * len(steps) / len(series)
