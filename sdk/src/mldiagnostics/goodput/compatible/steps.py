"""Step times as ml-goodput-measurement 0.2.3 takes them: from one step to the next, whatever lay between; pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.compatible.passing import begun_step
from mldiagnostics.goodput.ideal import SHORTEST, compute_ideal_step_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ideal_of", "step_times_of"]


def step_times_of(entries: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Return seconds by step, for each step that the next index follows in the log."""
    begun = [step for step in map(begun_step, entries) if step is not None]
    return {step: end - start for (step, start), (following, end) in pairwise(begun) if following == step + 1}


def ideal_of(step_times: Iterable[float]) -> float | None:
    """Return the ideal step time; None if all steps are shorter than a second."""
    return compute_ideal_step_time([seconds for seconds in step_times if seconds >= SHORTEST])
