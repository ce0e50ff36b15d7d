"""All entries of a log, divided in the order in which they came, as ml-goodput-measurement 0.2.3 does; pure.

A step whose index was seen before is a disruption: what was executed since the last one is a segment that the repeated
step ends, and the time from its last step to the job's next start is recovery.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.compatible.checkpoints import restore_seconds, save_seconds
from mldiagnostics.goodput.compatible.segment import Custom, Segment, custom_events, segment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.goodput.answer import Unproductive

__all__ = ["Pass", "begun_step", "divide"]

_PHASES = {
    "tpu_init_start_time": ("tpu_init_end_time", BadputType.TPU_INITIALIZATION),
    "training_prep_start_time": ("training_prep_end_time", BadputType.TRAINING_PREP),
}


@dataclass(slots=True)
class Pass:
    """What is known after some entries, in seconds."""

    events: Sequence[Custom]
    productive: float = 0.0
    unproductive: Unproductive = field(default_factory=dict)
    max_step: int = 0
    disruptions: int = 0
    steps: dict[int, float] = field(default_factory=dict)
    """Steps since the last disruption, by their start."""
    job_start: float | None = None
    job_end: float | None = None
    begun: dict[BadputType, float] = field(default_factory=dict)
    spent: dict[BadputType, float] = field(default_factory=dict)
    loading: float = 0.0
    last_load: float | None = None
    next_load_blocks: bool = True

    def take(self, entry: Mapping[str, Any]) -> None:
        """Take one entry into account."""
        if "job_start_time" in entry:
            self.job_start = entry["job_start_time"]
        if (begun := begun_step(entry)) is not None:
            self._begin_step(*begun)
        if "job_end_time" in entry:
            self.job_end = entry["job_end_time"]
        self._take_phase(entry)

    def finish(self) -> None:
        """Take the steps into account that no disruption ended."""
        if not self.steps:
            return
        last = max(self.steps)
        done = segment(self.steps, last, self.events)
        self._add(done)
        self.max_step = done.max_step
        if self.job_end is not None:
            self.productive += self.job_end - self.steps[last]
            self.max_step = last

    def _begin_step(self, step: int, start: float) -> None:
        if step in self.steps:
            self._disrupt(step)
            self.steps = {}
        self.steps[step] = start

    def _disrupt(self, step: int) -> None:
        self.disruptions += 1
        begun = next(reversed(self.steps.values()))
        lost = segment(self.steps, step, self.events)
        if self.last_load is not None:
            lost.unproductive[BadputType.DATA_LOADING_SYNC] = self.last_load
        self.next_load_blocks, self.last_load = True, None
        if self.job_start is not None and self.job_start > begun:
            lost.unproductive[BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION] = self.job_start - begun
        self._add(lost)

    def _take_phase(self, entry: Mapping[str, Any]) -> None:
        for start, (end, bucket) in _PHASES.items():
            if start in entry:
                self.begun[bucket] = entry[start]
                return
            if end in entry:
                if bucket in self.begun:
                    self.spent[bucket] = self.spent.get(bucket, 0.0) + entry[end] - self.begun.pop(bucket)
                return
        self._take_load(entry)

    def _take_load(self, entry: Mapping[str, Any]) -> None:
        bucket = BadputType.DATA_LOADING_SYNC
        if "data_loading_start_time" in entry:
            self.begun[bucket] = entry["data_loading_start_time"]
        elif "data_loading_end_time" in entry and bucket in self.begun:
            self.last_load = entry["data_loading_end_time"] - self.begun.pop(bucket)
            self.loading += self.last_load
            if self.next_load_blocks:
                self._add(Segment(0.0, {bucket: self.last_load}, 0))
                self.next_load_blocks = False

    def _add(self, part: Segment) -> None:
        self.productive += part.productive
        for bucket, more in part.unproductive.items():
            known = self.unproductive.setdefault(bucket, {} if isinstance(more, dict) else 0.0)
            if isinstance(known, dict) and isinstance(more, dict):
                for kind, seconds in more.items():
                    known[kind] = known.get(kind, 0.0) + seconds
            elif isinstance(known, float) and not isinstance(more, dict):
                self.unproductive[bucket] = known + more


def divide(entries: Sequence[Mapping[str, Any]]) -> Pass:
    """Return what all entries come to."""
    found = Pass(custom_events(entries))
    for entry in entries:
        found.take(entry)
    saving = save_seconds(entries)
    blocking = found.unproductive.get(BadputType.DATA_LOADING_SYNC, 0.0)
    assigned = {
        BadputType.TPU_INITIALIZATION: found.spent.get(BadputType.TPU_INITIALIZATION, 0.0),
        BadputType.TRAINING_PREP: found.spent.get(BadputType.TRAINING_PREP, 0.0),
        BadputType.DATA_LOADING_ASYNC: found.loading - blocking if isinstance(blocking, float) else 0.0,
        BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME: saving,
        BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME: restore_seconds(entries),
    }
    found.unproductive.update(assigned)
    if found.steps:
        found.finish()
        found.productive -= saving
    return found


def begun_step(entry: Mapping[str, Any]) -> tuple[int, float] | None:
    """Return index and start of the step that an entry tells of."""
    if "step_start_time" in entry and "step_count" in entry:
        return int(entry["step_count"]), entry["step_start_time"]
    return None
