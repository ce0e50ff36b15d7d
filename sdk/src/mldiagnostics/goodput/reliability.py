"""How often a job fails, how long it takes to recover, and how often it should save; formulas with their sources; pure.

Times are seconds. What the observations do not determine is None, never infinite.
"""

from __future__ import annotations

from math import sqrt

__all__ = [
    "daly_interval",
    "ettr",
    "mean_time_to_failure",
    "overhead",
    "ratio",
    "scheduling_goodput",
    "young_interval",
]


def ratio(part: float, whole: float) -> float | None:
    """Return a share from 0 to 1, None of nothing."""
    return part / whole if whole > 0 else None


def ettr(productive: float, wall: float) -> float | None:
    """Effective training time ratio: productive time by the wall-clock time of the job.

    With queueing in `wall` it is that of Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning
    Research Clusters", HPCA 2025 (arXiv 2410.21680).
    """
    return ratio(productive, wall)


def mean_time_to_failure(operating: float, failures: int) -> float | None:
    """Time in operation by the number of failures.

    The running attempt has not failed yet: its time counts, a failure does not. For exponential lifetimes that is the
    estimate of greatest likelihood under such censoring (Epstein & Sobel, "Life Testing", JASA 48, 1953). None without
    a failure.
    """
    return operating / failures if failures else None


def scheduling_goodput(available: float, wall: float) -> float | None:
    """Time with all resources at hand by time since they were asked for.

    One of the three factors of Google's ML productivity goodput (Wongpanich et al., arXiv 2502.06982); the same
    quotient as Kueue's running / (finished - created). Times the share of `available` that was productive it gives
    the ETTR with queueing.
    """
    return ratio(available, wall)


def young_interval(cost: float, mttf: float) -> float:
    """Seconds of work between two checkpoints that cost `cost` each: sqrt(2 C M).

    Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (9), 1974.
    """
    return sqrt(2 * cost * mttf)


def daly_interval(cost: float, mttf: float) -> float:
    """Seconds of work between two checkpoints, to a higher order; `mttf` where saving takes more than twice as long.

    Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22 (3), 2006, eq. 37.
    """
    if cost >= 2 * mttf:
        return mttf
    part = cost / (2 * mttf)
    return young_interval(cost, mttf) * (1 + sqrt(part) / 3 + part / 9) - cost


def overhead(interval: float, cost: float, mttf: float) -> float:
    """Share of time that saving every `interval` seconds costs: the saves and, at a failure, half an interval.

    First order, as in Young's derivation: C / t + t / (2 M). Above 1 saving cannot keep up with failing.
    """
    return cost / interval + interval / (2 * mttf)
