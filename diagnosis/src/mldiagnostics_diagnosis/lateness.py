"""How much later than the others each host arrives at the collectives of each step. Pure.

All hosts leave a collective together, so a host that waits less than the others arrived later, by the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_diagnosis.matching import Job

__all__ = ["CRITICAL", "WARNING", "LateHost", "delays", "late_hosts"]

WARNING = 0.1
"""Share of the step from which a delay counts."""
CRITICAL = 0.2
FEWEST_LATE_STEPS = 5
USUAL = 0.6
"""A host that is late in this share of the steps is late as a rule."""
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


def delays(job: Job) -> list[list[float]]:
    """Return the delay of each host in each step, in seconds: the median wait of the others above its own."""
    by_step = [_behind_others(waits) for waits in zip(*job.waits, strict=True)]
    return [list(series) for series in zip(*by_step, strict=True)]


def late_hosts(job: Job) -> list[LateHost]:
    """Return the hosts that are late again and again, the latest first; none if they are most of the hosts."""
    if not job.waits_together or not job.has_steps:
        return []
    behind = delays(job)
    late = [_late_steps(job, series) for series in behind]
    weights = [sum(series[step] for step in steps) for series, steps in zip(behind, late, strict=True)]
    found = [
        LateHost(index, steps, _cost(behind[index], steps, job))
        for index, steps in enumerate(late)
        if _counts(job, behind[index], steps, weights[index], sum(weights))
    ]
    if len(found) * 2 > len(behind):
        return []
    return sorted(found, key=lambda host: (-host.delay_s, job.summaries[host.index].host))


def _behind_others(waits: Sequence[float]) -> list[float]:
    """Return by how much each wait is below the median of the others."""
    ordered = sorted(waits)
    place = {wait: index for index, wait in enumerate(ordered)}
    return [_median_without(ordered, place[wait]) - wait for wait in waits]


def _median_without(ordered: Sequence[float], index: int) -> float:
    """Return the median of sorted values without one of them."""
    number = len(ordered) - 1

    def value(position: int) -> float:
        return ordered[position if position < index else position + 1]

    return (value((number - 1) // 2) + value(number // 2)) / 2


def _late_steps(job: Job, series: Sequence[float]) -> tuple[int, ...]:
    return tuple(step for step, delay in enumerate(series) if delay >= WARNING * job.seconds[step])


def _counts(job: Job, series: Sequence[float], steps: Sequence[int], weight: float, all_weights: float) -> bool:
    if len(steps) < FEWEST_LATE_STEPS:
        return False
    if len(steps) >= USUAL * len(series) and median(series) >= WARNING * job.step_s:
        return True
    return weight >= WARNING * sum(job.seconds) and weight >= OWN * all_weights


def _cost(series: Sequence[float], steps: Sequence[int], job: Job) -> float:
    """Return the delay per step; the median of a host that is late as a rule, so that single spikes do not count."""
    if len(steps) >= USUAL * len(series):
        return median(series)
    return fmean([series[step] for step in steps]) * len(steps) / len(job.seconds)
