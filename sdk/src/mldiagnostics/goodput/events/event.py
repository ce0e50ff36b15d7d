"""Events of a job, in whole microseconds; pure."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias


class EventCode(IntEnum):
    """Kinds of events; an even code of a pair opens a span, the odd one closes it."""

    JOB_START = 0
    JOB_END = 1
    STEP_START = 2  # arg: the step's index
    STEP_END = 3  # arg: the step's index
    TPU_INIT_START = 4
    TPU_INIT_END = 5
    PREP_START = 6
    PREP_END = 7
    LOAD_START = 8
    LOAD_END = 9
    REINIT_START = 10
    REINIT_END = 11
    STARTUP_START = 12  # compilation
    STARTUP_END = 13
    SAVE_START = 14  # arg: the checkpoint's step, -1 unknown
    SAVE_END = 15
    RESTORE_START = 16  # arg: the checkpoint's step, -1 unknown
    RESTORE_END = 17
    SLICE_DOWN_START = 18
    SLICE_DOWN_END = 19
    SCALE_UP_START = 20
    SCALE_UP_END = 21
    CUSTOM_START = 22  # arg: the type, upper-case
    CUSTOM_END = 23
    SLICES = 24  # arg: SliceCounts
    SAVED = 25  # t is its start; arg: CheckpointEvent
    RESTORED = 26  # t is its start; arg: CheckpointEvent
    CAUSE = 27  # arg: the reason why the attempt ends, such as "preemption"
    ALIVE = 28  # a heartbeat


class SliceCounts(NamedTuple):
    """Slices of an elastic job at a moment."""

    active: int
    total: int
    available: int


class CheckpointEvent(NamedTuple):
    """A save or restore by one host, as Orbax logs it when it ends."""

    until: int
    """The moment, in microseconds, at which it stopped blocking training."""
    step: int = -1
    tier: str = ""
    """`local` or `persistent`, empty if unknown."""


Arg: TypeAlias = "int | str | SliceCounts | CheckpointEvent"


class Event(NamedTuple):
    """One event of one run.

    `t` is microseconds of POSIX time, by the clock of the host that recorded the event. `rank` is the process that
    recorded it: checkpoints count from all ranks, other events from the lowest rank that records steps. `run` is the
    run id, empty in logs of ml-goodput-measurement.
    """

    t: int
    code: EventCode
    arg: Arg = 0
    rank: int = 0
    run: str = ""
