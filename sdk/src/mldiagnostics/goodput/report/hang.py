"""Detection of a hanging step from its age without events; pure.

A step hangs if it takes more than ten times the median, three times the 99th percentile of the last 1000 steps, and
30 s. The first step of an attempt compiles, so it also may take ten times the longest startup, and at least 30 min.
With fewer than ten earlier steps no hang is suspected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.report.model import Hang
from mldiagnostics.goodput.report.numbers import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence


RECENT = 1000
FEWEST = 10
SHORTEST_S = 30.0
SHORTEST_FIRST_S = 1800.0


def allowed(recent_s: Sequence[float], *, first: bool, longest_startup_s: float) -> float | None:
    """Return the seconds that the open step may take; None with too few earlier steps."""
    if len(recent_s) < FEWEST:
        return None
    ordered = sorted(recent_s)
    usual = max(10 * percentile(ordered, 50), 3 * percentile(ordered, 99), SHORTEST_S)
    return max(usual, 10 * longest_startup_s, SHORTEST_FIRST_S) if first else usual


def assess(step: int | None, age_s: float | None, allowed_s: float | None) -> Hang:
    """Return whether the open step hangs."""
    suspected = age_s is not None and allowed_s is not None and age_s > allowed_s
    return Hang(suspected=suspected, step=step, age_s=age_s, allowed_s=allowed_s)
