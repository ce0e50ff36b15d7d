"""The same with stretches of time taken out, which ml-goodput-measurement 0.2.3 does in a pass of its own; pure.

Only what an entry tells of is reduced: time between entries stays. Checkpoints and elastic events are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.compatible.passing import begun_step
from mldiagnostics.goodput.compatible.segment import Custom, custom_events
from mldiagnostics.goodput.exclusion import get_exclusion_overlap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.goodput.answer import Unproductive

__all__ = ["Excluding", "divide_excluding"]

_PHASES = {
    "tpu_init": BadputType.TPU_INITIALIZATION,
    "training_prep": BadputType.TRAINING_PREP,
    "data_loading": BadputType.DATA_LOADING_ASYNC,
}


@dataclass(slots=True)
class Excluding:
    """What is known after some entries, in seconds."""

    events: Sequence[Custom]
    windows: Sequence[tuple[float, float]]
    productive: float = 0.0
    excluded: float = 0.0
    max_step: int = 0
    disruptions: int = 0
    spent: dict[BadputType, float] = field(default_factory=dict)
    custom: dict[str, float] = field(default_factory=dict)
    steps: dict[int, float] = field(default_factory=dict)
    job_start: float | None = None
    job_end: float | None = None
    begun: dict[BadputType, float] = field(default_factory=dict)
    next_load_blocks: bool = True

    @property
    def unproductive(self) -> Unproductive:
        """Seconds by bucket."""
        return {**self.spent, BadputType.CUSTOM_BADPUT_EVENTS: self.custom}

    def take(self, entry: Mapping[str, Any]) -> None:
        """Take one entry into account."""
        if "job_start_time" in entry:
            self.job_start = entry["job_start_time"]
        if (begun := begun_step(entry)) is not None:
            step, start = begun
            if step in self.steps:
                self._disrupt(step)
            self.steps[step] = start
        if "job_end_time" in entry:
            self.job_end = entry["job_end_time"]
        for name, bucket in _PHASES.items():
            if f"{name}_start_time" in entry:
                self.begun[bucket] = entry[f"{name}_start_time"]
            elif f"{name}_end_time" in entry and bucket in self.begun:
                self._end_phase(bucket, entry[f"{name}_end_time"])

    def finish(self) -> None:
        """Take the steps into account that no disruption ended."""
        if not self.steps:
            return
        last = max(self.steps)
        self._divide_steps(last)
        if self.job_end is not None:
            self.productive += self._left(self.steps[last], self.job_end)
            self.max_step = last

    def _disrupt(self, step: int) -> None:
        self.disruptions += 1
        begun = next(reversed(self.steps.values()))
        self._divide_steps(step)
        if self.job_start is not None and self.job_start > begun:
            self._spend(BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION, self._left(begun, self.job_start))
        self.steps = {}
        self.next_load_blocks = True

    def _end_phase(self, bucket: BadputType, end: float) -> None:
        if bucket is BadputType.DATA_LOADING_ASYNC and self.next_load_blocks:
            self.next_load_blocks = False
            self._spend(BadputType.DATA_LOADING_SYNC, self._left(self.begun.pop(bucket), end))
        else:
            self._spend(bucket, self._left(self.begun.pop(bucket), end))

    def _divide_steps(self, kept: int) -> None:
        lowest = min(self.steps)
        found: dict[int, float] = {}
        for (step, start), (following, end) in pairwise(self.steps.items()):
            left = self._left(start, end)
            if following > kept:
                self._spend(BadputType.WASTED_PROGRESS_FROM_DISRUPTION, left)
            elif following - 1 == step:
                found[step] = max(0.0, left - self._spend_custom(start, end))
        if not found:
            return
        others = [duration for step, duration in found.items() if step != lowest]
        first = found.get(lowest, 0.0)
        mean = sum(others) / len(others) if others else first
        startup = max(0.0, first - mean)
        self._spend(BadputType.PROGRAM_STARTUP, startup)
        self.productive += sum(found.values()) - startup
        self.max_step = max(self.max_step, *found)

    def _spend_custom(self, start: float, end: float) -> float:
        """Book what events of a type of their own took of a step, and return how long that was."""
        whole = 0.0
        for event in self.events:
            inside = max(0.0, min(end, event.end) - max(start, event.start))
            self.custom[event.kind] = self.custom.get(event.kind, 0.0) + inside
            whole += inside
        return whole

    def _left(self, start: float, end: float) -> float:
        """Return what is left of a stretch, and count what is taken out."""
        covered = get_exclusion_overlap(start, end, self.windows)
        self.excluded += covered
        return max(0.0, end - start - covered)

    def _spend(self, bucket: BadputType, seconds: float) -> None:
        self.spent[bucket] = self.spent.get(bucket, 0.0) + seconds


def divide_excluding(entries: Sequence[Mapping[str, Any]], windows: Sequence[tuple[float, float]]) -> Excluding:
    """Return what all entries come to without the time in normalized windows."""
    found = Excluding(custom_events(entries), windows)
    for entry in entries:
        found.take(entry)
    found.finish()
    return found
