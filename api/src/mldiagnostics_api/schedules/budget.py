"""Budgets: how many captures, how often, and how many bytes, in any 24 hours.

The window slides, so that midnight and daylight saving change nothing, and a budget that is lowered below the captures
of the last 24 hours refuses until enough of them are older.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mldiagnostics.text.counts import counted

DAY_S: Final = 86_400.0
PULSES_PER_CAPTURE: Final = 20
"""Pulses that count as one capture for the administrator: 8 captures a day are a pulse every 9 minutes."""


class BudgetReason(StrEnum):
    """Limit that refuses a capture."""

    RUN_INTERVAL = "MinimumInterval"
    RUN_CAPTURES = "CapturesPerRun"
    CAPTURES = "Captures"
    BYTES = "Bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """Limits in any 24 hours; None does not limit."""

    captures_per_run: int | None = None
    captures: int | None = None
    bytes: int | None = None
    """A capture is refused if the stored bytes and the largest capture until now exceed it."""
    interval_s: float = 0.0
    """Least time between two captures of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A capture that counts, from the decision to make it."""

    target: str
    time: float
    bytes: int | None = None
    """Size of its traces; None until it has ended."""
    pulses: int = PULSES_PER_CAPTURE
    """Number of pulses that it counts as."""


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """A limit that is reached."""

    reason: BudgetReason
    message: str


def refusal(
    limits: BudgetLimits, spent: Collection[Spending], target: str, now: float, *, scope: str
) -> BudgetRefusal | None:
    """Return why a capture of a target may not be made now; None if it may.

    Args:
        limits: Limits to check.
        spent: Captures that were made under them.
        target: Target of the next capture.
        now: Current time. Captures after it, by a clock that was set back, count too.
        scope: Owner of the limits, for the message: `schedule nightly`.
    """
    recent = [each for each in spent if each.time > now - DAY_S]
    of_target = [each for each in recent if each.target == target]
    # The interval may be longer than a day.
    if any(now - each.time < limits.interval_s for each in spent if each.target == target):
        problem = f"the last capture of this run is less than {limits.interval_s:g} s old"
        return BudgetRefusal(BudgetReason.RUN_INTERVAL, f"{scope}: {problem}; it is skipped")
    if limits.captures_per_run is not None and _counted(of_target) >= limits.captures_per_run:
        return _used(BudgetReason.RUN_CAPTURES, scope, f"{counted(limits.captures_per_run, 'capture')} of this run")
    if limits.captures is not None and _counted(recent) >= limits.captures:
        return _used(BudgetReason.CAPTURES, scope, counted(limits.captures, "capture"))
    if limits.bytes is not None and expected_bytes(recent) > limits.bytes:
        return _used(BudgetReason.BYTES, scope, f"{limits.bytes} bytes")
    return None


def expected_bytes(recent: Iterable[Spending]) -> int:
    """Return the bytes of the captures and of one more.

    Captures that have not ended, and the next one, count as the largest of the others.
    """
    sizes = [each.bytes for each in recent]
    known = [size for size in sizes if size is not None]
    return sum(known) + (len(sizes) - len(known) + 1) * max(known, default=0)


def _counted(recent: Iterable[Spending]) -> int:
    return sum(each.pulses for each in recent) // PULSES_PER_CAPTURE


def _used(reason: BudgetReason, scope: str, amount: str) -> BudgetRefusal:
    return BudgetRefusal(reason, f"{scope}: the budget of {amount} in 24 hours is used; raise it, or wait")
