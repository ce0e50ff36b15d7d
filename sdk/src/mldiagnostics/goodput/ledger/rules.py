"""Which events belong together, which come first at one moment, and what contradicts what; pure."""

from __future__ import annotations

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events import Code

SECOND = 1_000_000
"""What is told again within this many microseconds was told by a second writer."""

CHECKPOINTS = frozenset(
    {Code.SAVE_START, Code.SAVE_END, Code.RESTORE_START, Code.RESTORE_END, Code.SAVED, Code.RESTORED}
)
"""What is believed of every rank."""

WAITS = frozenset({Code.SLICE_DOWN_START, Code.SCALE_UP_START})
PHASES = frozenset({Code.TPU_INIT_START, Code.PREP_START, Code.LOAD_START, Code.REINIT_START, *WAITS})
"""What follows each other: one that begins shows that the one before is over."""

CONTAINS = {
    Code.PREP_START: frozenset({Code.LOAD_START}),
    Code.REINIT_START: frozenset({Code.TPU_INIT_START, Code.PREP_START, Code.LOAD_START}),
}
"""Phases that may begin inside another one."""

CONTRADICTS = {code: PHASES - {code} - CONTAINS.get(code, frozenset()) for code in PHASES}

SINGLE = frozenset(
    each
    for code in (Code.TPU_INIT_START, Code.PREP_START, Code.REINIT_START, *WAITS)
    for each in (code, Code(code + 1))
)
"""Edges that are one event if they are told twice within a second."""

RESTARTS = frozenset({Code.TPU_INIT_START, Code.PREP_START, Code.REINIT_START, Code.RESTORE_START, Code.RESTORED})
"""What shows that a new attempt is on its way where no job start says so."""

BUCKETS = {
    Code.TPU_INIT_START: BadputType.TPU_INITIALIZATION,
    Code.PREP_START: BadputType.TRAINING_PREP,
    Code.LOAD_START: BadputType.DATA_LOADING_SYNC,
    Code.REINIT_START: BadputType.ELASTIC_REINITIALIZATION,
    Code.STARTUP_START: BadputType.PROGRAM_STARTUP,
    Code.SAVE_START: BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    Code.RESTORE_START: BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
    Code.SLICE_DOWN_START: BadputType.ELASTIC_SLICE_DOWN,
    Code.SCALE_UP_START: BadputType.ELASTIC_SCALE_UP,
    Code.SAVED: BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    Code.RESTORED: BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
}
"""What the time between an opening and its closing is spent on."""

CUSTOM = 16
"""Kinds of spans are the numbers of `BadputType`; from this one on they are types of custom events."""


def turn(code: int) -> int:
    """Return the place of an event among those of one moment.

    First a job starts, then things end, a step starts, things begin, the job ends.
    """
    if code == Code.JOB_START:
        return 0
    if code == Code.JOB_END:
        return 4
    if code == Code.STEP_START:
        return 2
    return 1 if code < Code.SLICES and code % 2 else 3


TURNS = bytes(turn(code) for code in Code)
