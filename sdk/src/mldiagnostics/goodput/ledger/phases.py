"""The phases of an attempt; pure.

Without its spans, an attempt changes phase at five moments:

1. it begins (R2): until the first step its time is `OTHER`;
2. its first step starts: the part above the mean of the other steps is program startup (R7);
3. startup ends: steps are productive;
4. the first step starts that a later attempt repeats: from there on steps are wasted progress (R3);
5. its last step ends (R4): the rest, up to the next attempt, is recovery. Without a next attempt it is `OTHER` (R14).

Each phase is one bucket, so any sum is a difference of moments minus the time that spans cover.
"""

from __future__ import annotations

from typing import NamedTuple

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType

OTHER, STARTUP, PRODUCTIVE, WASTED, RECOVERY = range(5)
BUCKET_OF_PHASE: tuple[Bucket | None, ...] = (
    Bucket(BadputType.OTHER),
    Bucket(BadputType.PROGRAM_STARTUP),
    None,
    Bucket(BadputType.WASTED_PROGRESS_FROM_DISRUPTION),
    Bucket(BadputType.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION),
)
"""Buckets of the phases of an attempt, in order; `None` is productive."""


class AttemptTimeline(NamedTuple):
    """One attempt: moments in microseconds, and rows of steps in `FoldedColumns`.

    The first six fields are the moments in order; `AttemptTimelines` walks over them by position.
    """

    begin: int
    """Begin of the attempt: its restart, or the begin of the run (R2)."""
    start: int
    """Start of the first step."""
    startup: int
    """End of program startup within the first step (R7)."""
    lost: int
    """Start of the first step that a later attempt repeats (R3)."""
    last_end: int
    """End of the last step, known or estimated (R4)."""
    until: int
    """Begin of the next attempt, or the end of the run."""
    first: int
    """Row of the first step."""
    kept: int
    """Row after the last step that survives (R3)."""
    done: int
    """Row after the last step that is done and survives."""
    last: int
    """Row of the last step."""
    ended: bool
    """Whether the last step was done."""
    last_productive: int
    """Nearest attempt up to this one with a step that is done and survives; -1 without one."""
