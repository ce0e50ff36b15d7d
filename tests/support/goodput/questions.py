"""Logs of random jobs for which ml-goodput-measurement is right, with questions in the form of `goodput_peer`."""

from __future__ import annotations

from random import Random
from typing import Any

from support.goodput.entries import JOB, Payload

OPS = ("goodput", "interval", "exclusions")
RESTARTED_OPS = (*OPS, "details", "deviation")


def plain_questions(seed: int, number: int, *, t0: float) -> list[dict[str, Any]]:
    """Return questions about as many jobs, all started at `t0` (POSIX seconds).

    The jobs have ended and their phases do not overlap. A job with a restart repeats at least one step, repeats all
    lost steps, keeps step 0, and has neither loads nor custom events; in any other job each custom event lies in one
    step. Windows hold the whole job, and no time is excluded: decision 0018 lists the rest.
    """
    rng = Random(seed)
    return [_question(rng, t0) for _ in range(number)]


def _question(rng: Random, t0: float) -> dict[str, Any]:
    job, restarted = _Job(rng, t0), rng.random() < 0.5
    job.run(restarted=restarted)
    return {
        "entries": job.entries,
        "elastic": False,
        "op": rng.choice(RESTARTED_OPS if restarted else OPS),
        "window": (t0 - 5, job.t + 5),
        "exclusions": [],
    }


class _Job:
    """Writes its log while it runs."""

    def __init__(self, rng: Random, t0: float) -> None:
        self.entries: list[tuple[float, Payload]] = []
        self.t = t0
        self._rng = rng

    def run(self, *, restarted: bool) -> None:
        """Start, prepare and execute steps, if wanted in two attempts, and end."""
        if restarted:
            self._start()
            last = self._execute(0, self._rng.randint(3, 10))
            self._pass(5, 100)
            self._start()
            first = self._rng.randint(1, last - 1)
            self._execute(first, last - first + self._rng.randint(2, 6))
        else:
            self._start()
            self._phase("data_loading")
            self._execute(0, self._rng.randint(3, 10), events=True)
        self._record("job_end_time")

    def _start(self) -> None:
        self._record("job_start_time")
        self._phase("tpu_init")
        self._phase("training_prep")

    def _execute(self, first: int, number: int, *, events: bool = False) -> int:
        """Execute steps and return the index of the last one."""
        for index in range(first, first + number):
            self._record("step_start_time", step_count=index)
            self._pass(1, 6)
            if events and index < first + number - 1 and self._rng.random() < 0.3:
                self._phase("custom_badput_event", custom_badput_event_type="eval")
                self._pass(1, 2)
        return first + number - 1

    def _phase(self, name: str, **more: Any) -> None:
        self._record(f"{name}_start_time", **more)
        self._pass(0.5, 9)
        self._record(f"{name}_end_time", **more)

    def _record(self, key: str, **more: Any) -> None:
        self.entries.append((self.t, {"job_name": JOB, **more, key: self.t}))

    def _pass(self, least: float, most: float) -> None:
        self.t += self._rng.uniform(least, most)
