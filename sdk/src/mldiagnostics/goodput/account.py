"""What the ledger answers: exact sums in whole microseconds; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.goodput.buckets import BadputType

__all__ = ["Account", "Attempt", "Bucket", "Disruption", "StepTimes", "TimelineSegment"]


class Bucket(NamedTuple):
    """A bucket: what kind of badput, and for CUSTOM_BADPUT_EVENTS which type of event (upper-case, else empty)."""

    bucket: BadputType
    custom: str = ""


class TimelineSegment(NamedTuple):
    """A piece of the timeline: from `start` to `end` (microseconds) the job did one thing; None is productive."""

    start: int
    end: int
    spent: Bucket | None
    step: int | None = None
    """The step it belongs to, where it is productive, wasted or a step's startup."""


@dataclass(frozen=True, slots=True)
class Account:
    """A stretch of the job's life, divided: `productive + sum(unproductive.values()) == elapsed`, always.

    All times are microseconds. `start` and `end` are the stretch asked for, clipped to the life of the job; `elapsed`
    is that less `excluded`. `unproductive` has only buckets with something in them, OTHER among them, and never
    DATA_LOADING_ASYNC, which runs beside the rest and is `overlay`.
    """

    start: int
    end: int
    elapsed: int
    excluded: int
    productive: int
    unproductive: Mapping[Bucket, int]
    overlay: int
    disruptions: int
    max_step: int | None
    """Highest index of a step that is done and not lost, as of `end`; None without one."""
    last_step: int | None
    """Index of the step that began last before `end`; None without one."""


@dataclass(frozen=True, slots=True)
class Disruption:
    """One loss of the job: its last attempt's end to the first completed step of the next. Times in microseconds.

    `lost` is where the old attempt's account ends (start of its last step, or where that is known to be done; no sooner
    than the job's life begins), `seen` its last sign of life, `restarted` where the next attempt begins, `resumed` the
    start of its first step, None while there is none. The phases, in order: detect = seen - lost, reschedule =
    restarted - seen, init and restore what the spans between `restarted` and `resumed` say, first_step all program
    startup there and in the first step.
    """

    lost: int
    seen: int
    restarted: int
    resumed: int | None
    starts: int
    """Job starts after the last step of the old attempt: each but the last came to no step."""
    cause: str
    steps_lost: int
    """Executions of steps that were done and have to be done again (the interrupted one is not among them)."""
    wasted: int
    """Time that those had taken."""
    detect: int
    reschedule: int
    init: int
    restore: int
    first_step: int
    recovered: int
    """From `lost` to `resumed` (or to now), and the startup within the first step: time to recover."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt did, in microseconds; `account` is the stretch from its begin to the next one's."""

    number: int
    start: int
    end: int
    first_step: int | None
    last_step: int | None
    account: Account
    ended_by: Disruption | None = None


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Durations of the steps that are done and not lost, without events inside them; in order of their index."""

    steps: Sequence[int] = field(default_factory=tuple)
    durations: Sequence[int] = field(default_factory=tuple)
    """Microseconds."""
