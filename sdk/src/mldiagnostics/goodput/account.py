"""Accounts of a job: exact sums in whole microseconds; pure."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.goodput.buckets import BadputType


class Bucket(NamedTuple):
    """A kind of badput; `custom` is the upper-case type of a custom event, else empty."""

    bucket: BadputType
    custom: str = ""


class TimelineSegment(NamedTuple):
    """A part of the timeline, in microseconds; without `spent`, it is productive."""

    start: int
    end: int
    spent: Bucket | None
    step: int | None = None
    """The step of productive or wasted time, or of a startup."""


@dataclass(frozen=True, slots=True)
class Account:
    """The time of a job, or of a window, by bucket.

    `productive + sum(unproductive.values()) == elapsed`. All times are microseconds. `start` and `end` are the bounds
    of the query, clipped to the job; `elapsed` is the time between them without `excluded`. `unproductive` has the
    buckets that are not empty. DATA_LOADING_ASYNC runs beside other buckets: its time is `overlay`, never in
    `unproductive`.
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
    """Index of the step that started last before `end`; None without one."""


@dataclass(frozen=True, slots=True)
class Disruption:
    """The time from the end of an attempt to the first step of the next one.

    Times are microseconds. `lost` is where the account of the old attempt ends: the start of its last step, or its
    recorded end, but not before the start of the job. `seen` is its last event, `restarted` the start of the next
    attempt, `resumed` the start of its first step, None without one. The phases, in order: detect is seen - lost,
    reschedule is restarted - seen, init and restore are the spans between `restarted` and `resumed`, first_step is the
    program startup there and in the first step.
    """

    lost: int
    seen: int
    restarted: int
    resumed: int | None
    starts: int
    """Job starts after the last step of the old attempt; all but the last failed before their first step."""
    cause: str
    steps_lost: int
    """Completed executions of steps that have to be repeated; the interrupted step does not count."""
    wasted: int
    """The time of these executions."""
    detect: int
    reschedule: int
    init: int
    restore: int
    first_step: int
    recovered: int
    """Time to recover: from `lost` to `resumed`, or to now, and the startup within the first step."""
    message: str = ""
    """Words of the cluster about the cause; empty if only the log has it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt, in microseconds; `account` ends at the start of the next one."""

    number: int
    start: int
    end: int
    first_step: int | None
    last_step: int | None
    account: Account
    ended_by: Disruption | None = None


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Durations of completed steps that are not lost, without events inside them."""

    steps: array[int] = field(default_factory=lambda: array("i"))
    durations: array[int] = field(default_factory=lambda: array("q"))
    """Microseconds."""
