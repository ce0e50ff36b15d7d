"""Which events belong together, which come first at one moment, and what contradicts what; pure."""

from __future__ import annotations

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events import EventCode

SECOND = 1_000_000
"""What is told again within this many microseconds was told by a second writer."""

CHECKPOINTS = frozenset(
    {
        EventCode.SAVE_START,
        EventCode.SAVE_END,
        EventCode.RESTORE_START,
        EventCode.RESTORE_END,
        EventCode.SAVED,
        EventCode.RESTORED,
    }
)
"""What is believed of every rank."""

WAITS = frozenset({EventCode.SLICE_DOWN_START, EventCode.SCALE_UP_START})
PHASES = frozenset(
    {EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.LOAD_START, EventCode.REINIT_START, *WAITS}
)
"""What follows each other: one that begins shows that the one before is over."""

CONTAINS = {
    EventCode.PREP_START: frozenset({EventCode.LOAD_START}),
    EventCode.REINIT_START: frozenset({EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.LOAD_START}),
}
"""Phases that may begin inside another one."""

CONTRADICTS = {code: PHASES - {code} - CONTAINS.get(code, frozenset()) for code in PHASES}

SINGLE = frozenset(
    each
    for code in (EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.REINIT_START, *WAITS)
    for each in (code, EventCode(code + 1))
)
"""Edges that are one event if they are told twice within a second."""

RESTARTS = frozenset(
    {
        EventCode.TPU_INIT_START,
        EventCode.PREP_START,
        EventCode.REINIT_START,
        EventCode.RESTORE_START,
        EventCode.RESTORED,
    }
)
"""What shows that a new attempt is on its way where no job start says so."""

BUCKETS = {
    EventCode.TPU_INIT_START: BadputType.TPU_INITIALIZATION,
    EventCode.PREP_START: BadputType.TRAINING_PREP,
    EventCode.LOAD_START: BadputType.DATA_LOADING_SYNC,
    EventCode.REINIT_START: BadputType.ELASTIC_REINITIALIZATION,
    EventCode.STARTUP_START: BadputType.PROGRAM_STARTUP,
    EventCode.SAVE_START: BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    EventCode.RESTORE_START: BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
    EventCode.SLICE_DOWN_START: BadputType.ELASTIC_SLICE_DOWN,
    EventCode.SCALE_UP_START: BadputType.ELASTIC_SCALE_UP,
    EventCode.SAVED: BadputType.UNPRODUCTIVE_CHECKPOINT_SAVE_TIME,
    EventCode.RESTORED: BadputType.UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME,
}
"""What the time between an opening and its closing is spent on."""

CUSTOM = 16
"""Kinds of spans are the numbers of `BadputType`; from this one on they are types of custom events."""


def turn(code: int) -> int:
    """Return the place of an event among those of one moment.

    First a job starts, then things end, a step starts, things begin, the job ends.
    """
    if code == EventCode.JOB_START:
        return 0
    if code == EventCode.JOB_END:
        return 4
    if code == EventCode.STEP_START:
        return 2
    return 1 if code < EventCode.SLICES and code % 2 else 3


TURNS = bytes(turn(code) for code in EventCode)
