"""Failure rates, recovery times and checkpoint intervals; pure.

Times are seconds. None stands for values that the observations do not determine.
"""

from __future__ import annotations

from math import sqrt


def ratio(part: float, whole: float) -> float | None:
    """Return a share from 0 to 1, None if `whole` is 0."""
    return part / whole if whole > 0 else None


def ettr(productive: float, wall: float) -> float | None:
    """Return the effective training time ratio, productive by wall-clock time.

    With queueing in `wall` it is the ratio of Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning
    Research Clusters", HPCA 2025 (arXiv 2410.21680).
    """
    return ratio(productive, wall)


def mean_time_to_failure(operating: float, failures: int) -> float | None:
    """Return the time in operation by the number of failures, None without failures.

    The time of the running attempt counts although it has not failed yet. For exponential lifetimes this is the maximum
    likelihood estimate under such censoring (Epstein & Sobel, "Life Testing", JASA 48, 1953).
    """
    return operating / failures if failures else None


def scheduling_goodput(available: float, wall: float) -> float | None:
    """Return the time with all resources by the time since they were requested.

    One of the three factors of Google's ML productivity goodput (Wongpanich et al., arXiv 2502.06982); the same
    quotient as Kueue's running / (finished - created). Multiplied by the productive share of `available` it is the
    ETTR with queueing.
    """
    return ratio(available, wall)


def young_interval(cost: float, mttf: float) -> float:
    """Return the seconds of work between checkpoints of `cost` seconds: sqrt(2 C M).

    Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (9), 1974.
    """
    return sqrt(2 * cost * mttf)


def daly_interval(cost: float, mttf: float) -> float:
    """Return the seconds of work between two checkpoints, to a higher order.

    The result is `mttf` if `cost` is at least twice as long.

    Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22 (3), 2006, eq. 37.
    """
    if cost >= 2 * mttf:
        return mttf
    part = cost / (2 * mttf)
    return young_interval(cost, mttf) * (1 + sqrt(part) / 3 + part / 9) - cost


def overhead(interval: float, cost: float, mttf: float) -> float:
    """Return the share of time lost to saves and failures.

    Saves happen every `interval` seconds, and each failure loses half an interval. First order, as in Young's
    derivation: C / t + t / (2 M). Above 1, the job makes no progress.
    """
    return cost / interval + interval / (2 * mttf)
