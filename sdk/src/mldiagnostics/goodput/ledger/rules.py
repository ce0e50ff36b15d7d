"""Tables of the rules: duplicates, precedence, contradictions (R9), buckets; pure."""

from __future__ import annotations

from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import EventCode

DUPLICATE_US = 1_000_000
"""An event that repeats within this many microseconds comes from a second writer (R2)."""

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
"""Events that count from every rank (R13)."""

WAITS = frozenset({EventCode.SLICE_DOWN_START, EventCode.SCALE_UP_START})
PHASES = frozenset(
    {EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.LOAD_START, EventCode.REINIT_START, *WAITS}
)
"""Phases that follow each other: the start of one shows that the previous one is over (R9)."""

CONTAINS = {
    EventCode.PREP_START: frozenset({EventCode.LOAD_START}),
    EventCode.REINIT_START: frozenset({EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.LOAD_START}),
}
"""Phases that may start inside another one."""

CONTRADICTS = {code: PHASES - {code} - CONTAINS.get(code, frozenset()) for code in PHASES}
"""Starts that show that an open phase is over (R9)."""

SINGLE = frozenset(
    each
    for code in (EventCode.TPU_INIT_START, EventCode.PREP_START, EventCode.REINIT_START, *WAITS)
    for each in (code, EventCode(code + 1))
)
"""Starts and ends that are one event if they repeat within a second (R2)."""

RESTARTS = frozenset(
    {
        EventCode.TPU_INIT_START,
        EventCode.PREP_START,
        EventCode.REINIT_START,
        EventCode.RESTORE_START,
        EventCode.RESTORED,
    }
)
"""Events that show a new attempt where the log has no job start (R2)."""

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
"""Buckets of the spans, by the code that opens them."""

CUSTOM = 16
"""Span kinds below this number are values of `BadputType`; from it on they are custom events."""


def precedence(code: int) -> int:
    """Return the rank of a code among the events of one moment.

    The order is: job start, ends, step start, starts, job end.
    """
    if code == EventCode.JOB_START:
        return 0
    if code == EventCode.JOB_END:
        return 4
    if code == EventCode.STEP_START:
        return 2
    return 1 if code < EventCode.SLICES and code % 2 else 3


PRECEDENCE = bytes(precedence(code) for code in EventCode)
