"""What is logged of a job, as events of the ledger: instants in whole microseconds, and what happened then; pure."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

__all__ = ["Arg", "CheckpointEvent", "Event", "EventCode", "SliceCounts"]


class EventCode(IntEnum):
    """What happened. Those that come in pairs open (even) and close (odd) a span of time."""

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
    SLICES = 24  # arg: Slices
    SAVED = 25  # t is its begin; arg: Saved
    RESTORED = 26  # t is its begin; arg: Saved
    CAUSE = 27  # arg: why the attempt ends: "preemption", …
    ALIVE = 28  # a sign of life (heartbeat); nothing else follows from it


class SliceCounts(NamedTuple):
    """How many slices of an elastic job there are at a moment."""

    active: int
    total: int
    available: int


class CheckpointEvent(NamedTuple):
    """A checkpoint written or read by one host, told when it was over; as Orbax logs it."""

    until: int
    """When it no longer blocked training, in microseconds."""
    step: int = -1
    tier: str = ""
    """`local` or `persistent`, empty if unknown."""


Arg: TypeAlias = "int | str | SliceCounts | CheckpointEvent"


class Event(NamedTuple):
    """One thing that happened to one run, at `t` microseconds of POSIX time by the clock of the host that told it.

    `rank` is the process that told it (the lowest rank that tells of steps is believed, checkpoints are believed of
    all). `run` is the run id, empty in logs of ml-goodput-measurement.
    """

    t: int
    code: EventCode
    arg: Arg = 0
    rank: int = 0
    run: str = ""
