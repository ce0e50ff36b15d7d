"""Hypothesis strategies for logs of jobs: correct logs, logs with harmless or harmful changes, and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts
from support.goodput.notation import T0
from support.goodput.reading import CHECKPOINTS
from support.goodput.truth import Job, Style

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from mldiagnostics.goodput.events.event import Arg

LAG = 300_000
"""Largest delay of a second writer of the same events, in microseconds."""
TICK = 250_000
START = T0 * 1_000_000


def dice() -> st.SearchStrategy[Random]:
    """Dice whose throws can be made smaller."""
    return st.randoms(use_true_random=False)


@st.composite
def jobs(draw: st.DrawFn, *, attempts: int = 5, steps: int = 6, jitter: int = 0) -> Job:
    """Jobs with their truth."""
    style = Style(draw(st.booleans()), draw(st.integers(1, 3)), jitter)
    return Job(draw(dice()), style).live(draw(st.integers(1, attempts)), draw(st.integers(1, steps)))


def with_harmless_changes(events: Sequence[Event], dice: Random) -> list[Event]:
    """Return the log with harmless changes: repeated events, a second writer, other hosts, any order."""
    changed = list(events)
    for event in events:
        chance = dice.random()
        if chance < 0.2:
            changed.append(event)
        elif chance < 0.5 and event.code not in CHECKPOINTS:
            changed.append(event._replace(t=event.t + dice.randint(0, LAG)))
        elif chance < 0.6 and event.code not in CHECKPOINTS:
            changed.append(event._replace(t=event.t + dice.randint(-3, 3) * 1_000_000, rank=dice.randint(1, 3)))
        elif chance < 0.7:
            changed.append(Event(event.t + dice.randint(0, LAG), EventCode.ALIVE))
    dice.shuffle(changed)
    return changed


def damaged(events: Sequence[Event], dice: Random) -> list[Event]:
    """Return the log with events lost, moved, repeated and contradicted, before the job and in the future."""
    changed = []
    for event in with_harmless_changes(events, dice):
        chance = dice.random()
        if chance < 0.1:
            changed.append(event._replace(t=event.t + dice.randint(-20_000, 20_000) * 1000))
        elif chance < 0.9:
            changed.append(event)
        if 0.85 < chance < 0.9:
            changed.append(_noise(dice, event.t))
        elif chance > 0.95 and event.code < EventCode.SLICES:
            changed.append(event._replace(code=EventCode(event.code ^ 1)))
    return changed


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Logs of damaged jobs, of one or two jobs as they are, and noise with many events at a time or a second apart."""
    roll = draw(dice())
    kind = draw(st.sampled_from(["damaged", "damaged", "job", "jobs", "noise", "noise"]))
    if kind == "noise":
        return [_noise(roll, START + draw(st.integers(0, 40)) * TICK) for _ in range(draw(st.integers(0, 30)))]
    job = draw(jobs(attempts=4, steps=4))
    if kind == "jobs":
        after = Job(roll, Style(), job.clock + roll.randint(500, 60_000) * 1000).live(attempts=2, steps=3)
        return job.events + after.events
    return job.events if kind == "job" else damaged(job.events, roll)


@st.composite
def moments(draw: st.DrawFn, events: Sequence[Event]) -> int:
    """A time to ask at: at, just before or just after an event, or well after all."""
    times = sorted({event.t for event in events}) or [START]
    return draw(st.sampled_from([*times, times[-1] + 10_000_000])) + draw(st.sampled_from([0, 0, -1, 1, 400_000]))


_NOISE = [*EventCode, *[EventCode.JOB_START, EventCode.JOB_END] * 2, *[EventCode.STEP_START] * 8]


def _noise(dice: Random, t: int) -> Event:
    code = dice.choice(_NOISE)
    arg: Arg = 0
    if code in (EventCode.STEP_START, EventCode.STEP_END):
        arg = dice.randint(0, 5)
    elif code in (EventCode.CUSTOM_START, EventCode.CUSTOM_END):
        arg = dice.choice(["A", "B"])
    elif code in (EventCode.SAVE_START, EventCode.SAVE_END, EventCode.RESTORE_START, EventCode.RESTORE_END):
        arg = dice.choice([-1, 3])
    elif code in (EventCode.SAVED, EventCode.RESTORED):
        arg = CheckpointEvent(t + dice.randint(-2, 12) * TICK)
    elif code is EventCode.SLICES:
        arg = SliceCounts(dice.randint(0, 4), 4, dice.randint(0, 4))
    elif code is EventCode.CAUSE:
        arg = dice.choice(["preemption", "maintenance"])
    rank = dice.choice([0, 0, 0, 1]) if code in CHECKPOINTS else 0
    return Event(t, code, arg, rank)
