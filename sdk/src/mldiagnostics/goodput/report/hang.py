"""Whether a step that does not end is a hang: age without events, against what steps of this job take; pure.

A step may take ten times the median and three times the 99th percentile of the last thousand, and never counts as
hung within half a minute. The first step of an attempt compiles: it may take ten times the longest startup seen, and
half an hour at least. With fewer than ten steps to compare with nothing is suspected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.goodput.report.model import Hang
from mldiagnostics.goodput.report.numbers import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RECENT", "allowed", "judged"]

RECENT = 1000
FEWEST = 10
SHORTEST_S = 30.0
SHORTEST_FIRST_S = 1800.0


def allowed(recent_s: Sequence[float], *, first: bool, longest_startup_s: float) -> float | None:
    """Return how many seconds the open step may take, None without enough to compare with."""
    if len(recent_s) < FEWEST:
        return None
    ordered = sorted(recent_s)
    usual = max(10 * percentile(ordered, 50), 3 * percentile(ordered, 99), SHORTEST_S)
    return max(usual, 10 * longest_startup_s, SHORTEST_FIRST_S) if first else usual


def judged(step: int | None, age_s: float | None, allowed_s: float | None) -> Hang:
    """Return the verdict on the open step."""
    suspected = age_s is not None and allowed_s is not None and age_s > allowed_s
    return Hang(suspected=suspected, step=step, age_s=age_s, allowed_s=allowed_s)
