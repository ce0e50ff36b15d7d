"""The events of one job that is long enough for everything that a report shows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events.conversion import payload_of
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

S = 1_000_000
BEGIN = 1_790_000_000 * S


@dataclass
class Story:
    """A job that is logged while its clock advances; durations are seconds."""

    clock: int = BEGIN
    events: list[Event] = field(default_factory=list)

    def log(self, code: EventCode, arg: int | str | CheckpointEvent = 0) -> None:
        self.events.append(Event(self.clock, code, arg))

    def wait(self, seconds: float) -> None:
        self.clock += round(seconds * S)

    def during(self, opens: EventCode, seconds: float, arg: int | str = 0) -> None:
        self.log(opens, arg)
        self.wait(seconds)
        self.log(EventCode(opens + 1), arg)

    def start(self, *, restore_s: float = 0) -> None:
        self.log(EventCode.JOB_START)
        self.wait(2)
        self.during(EventCode.TPU_INIT_START, 18)
        self.log(EventCode.PREP_START)
        self.wait(9)
        if restore_s:
            self.during(EventCode.RESTORE_START, restore_s, -1)
        self.wait(6)
        self.log(EventCode.PREP_END)
        self.wait(1)

    def train(self, first: int, last: int, *, step_s: float = 2.0, compile_s: float = 25.0) -> None:
        """Run steps first..last; every 50th is saved before it, every 100th evaluated."""
        for step in range(first, last + 1):
            if step % 50 == 0 and step > first:
                self.log(EventCode.SAVED, CheckpointEvent(self.clock + 3 * S, step, "persistent"))
                self.wait(3)
            if step % 100 == 0 and step > first:
                self.during(EventCode.CUSTOM_START, 11, "EVAL")
            self.during(EventCode.LOAD_START, 0.3 if step > first else 4)
            self.log(EventCode.STEP_START, step)
            self.wait(step_s + (step * 37 % 11) / 100 + (compile_s if step == first else 0))

    def die(self, cause: str = "", *, unseen_s: float = 20, away_s: float = 70) -> None:
        if cause:
            self.log(EventCode.CAUSE, cause)
        self.wait(unseen_s)
        self.log(EventCode.ALIVE)
        self.wait(away_s)


def eventful() -> Story:
    """A job of about 40 minutes that is preempted, crashes, and is still running at the end."""
    job = Story()
    job.start()
    job.train(0, 260)
    job.die("preemption")
    job.start(restore_s=14)
    job.train(250, 430)
    job.die(away_s=160)
    job.start(restore_s=12)
    job.train(400, 700)
    return job


def finished() -> Story:
    """A job of some minutes without any trouble, ended."""
    job = Story()
    job.start()
    job.train(0, 120)
    job.log(EventCode.JOB_END)
    return job


def write_log(file: Path, events: Sequence[Event], run: str = "", *, garbage: str = "") -> Path:
    """Write a log as the peer keeps it, one payload a line."""
    payloads = [{**payload_of(event, "trainer"), "run_id": run} for event in events if event.code.name != "ALIVE"]
    text = "".join(json.dumps(payload) + "\n" for payload in payloads)
    with file.open("a", encoding="utf-8") as log:
        log.write(text + garbage)
    return file
