"""Logs of jobs that ended, made up at random, and what is asked of them: the form is that of `goodput_peer`."""

from __future__ import annotations

from random import Random
from typing import Any

from support.goodput_entries import JOB, Payload

OPS = ("goodput", "goodput", "details", "deviation", "interval", "exclusions")


def questions(seed: int, number: int, *, t0: float) -> list[dict[str, Any]]:
    """Return questions about as many jobs, all of which began at `t0` (POSIX seconds)."""
    rng = Random(seed)
    return [_question(rng, t0) for _ in range(number)]


def _question(rng: Random, t0: float) -> dict[str, Any]:
    job = _Job(rng, t0, elastic=rng.random() < 0.4)
    for _ in range(rng.randint(1, 4)):
        job.attempt()
    job.tell("job_end_time")
    since = t0 + rng.uniform(-5, job.t - t0)
    begins = [t0 + rng.uniform(-5, job.t - t0) for _ in range(rng.randint(0, 3))]
    return {
        "entries": job.entries,
        "elastic": job.elastic,
        "op": rng.choice(OPS),
        "window": (since, rng.uniform(since + 1, job.t + 6)),
        "exclusions": [(begin, begin + rng.uniform(1, 30)) for begin in begins],
    }


class _Job:
    """Writes its log while it runs."""

    def __init__(self, rng: Random, t0: float, *, elastic: bool) -> None:
        self.elastic = elastic
        self.entries: list[tuple[float, Payload]] = []
        self.t = t0
        self._rng = rng
        self._step = self._saved = 0

    def tell(self, key: str, **more: Any) -> None:
        late = self._rng.choice([0.0, 0.0, 0.5])
        self.entries.append((self.t + late, {"job_name": JOB, **more, key: self.t}))

    def attempt(self) -> None:
        """Start, get ready, execute some steps, and be lost."""
        if not self.entries or self._happens(0.9):
            self.tell("job_start_time")
        if self.elastic:
            self._wait_for_slices()
        self._phase("tpu_init", 0.8)
        self._phase("training_prep", 0.8)
        if self.elastic and self._happens(0.6):
            self.tell("elastic_reinit_end_time")
        if self._happens(0.5):
            kind = self._rng.choice(["restore", "emergency_restore"])
            self._checkpoint(kind, "checkpoint_manager", "checkpointer")
        for _ in range(self._rng.randint(0, 8)):
            self._execute_step()
        self._pass(5, 100)
        self._step = self._rng.choice([self._saved, max(0, self._step - 2), self._step, 0])

    def _execute_step(self) -> None:
        self._phase("data_loading", 0.7)
        self.tell("step_start_time", step_count=self._step)
        self._pass(0.3, 6)
        what = self._rng.choice(["eval", "sdc", "begin", "end", "", "", "", ""])
        if what in {"eval", "sdc", "begin"}:
            self.tell("custom_badput_event_start_time", custom_badput_event_type=what)
            self._pass(0.2, 3)
        if what in {"eval", "sdc", "end"}:
            self.tell("custom_badput_event_end_time", custom_badput_event_type=what)
        if self._happens(0.3):
            self._checkpoint("save", "checkpoint_manager_blocking", "checkpointer_blocking", "wait_for_prev")
            self._saved = self._step
        self._step += 2 if self._happens(0.06) else 1

    def _wait_for_slices(self) -> None:
        active, available = self._rng.randint(1, 4), self._rng.randint(1, 4)
        self.tell("elastic_slice_counts_timestamp", active_slices=active, total_slices=4, available_slices=available)
        if self._happens(0.5):
            kind = self._rng.choice(["elastic_scale_up", "elastic_slice_down"])
            self.tell("elastic_wait_start_time", elastic_wait_event_type=kind)
            self._pass(1, 20)
            self.tell("elastic_wait_end_time", elastic_wait_event_type=kind)
            if self._happens(0.7):
                self.tell("elastic_reinit_start_time")

    def _phase(self, name: str, likely: float) -> None:
        if self._happens(likely):
            self.tell(f"{name}_start_time")
            self._pass(0.5, 9)
            if self._happens(0.9):
                self.tell(f"{name}_end_time")

    def _checkpoint(self, kind: str, *parts: str) -> None:
        took = self._rng.uniform(0.1, 2)
        times = {f"{part}_start_time": self.t for part in parts} | {f"{part}_duration_secs": took for part in parts}
        more = {"get_old_steps_start_time": self.t, "get_old_steps_duration_secs": 0.0} if kind == "save" else {}
        directory = self._rng.choice(["gs://bucket/c", "/local/c"])
        entry = {"job_name": JOB, "step": self._step, "event_type": kind, "directory": directory, **times, **more}
        self.entries += [(self.t + took, entry)] * self._rng.randint(1, 2)
        self.t += took

    def _pass(self, least: float, most: float) -> None:
        self.t += self._rng.uniform(least, most)

    def _happens(self, likely: float) -> bool:
        return self._rng.random() < likely
