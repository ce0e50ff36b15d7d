"""Triggers: their limits, their settling time, and the worth of a capture.

A trigger fires if its reading is at or above its threshold for its settling time. Then it cools down, and fires again
only if the reading is clearly higher than the highest one that it captured. This high-water mark is forgotten after
some hours and with the attempt, so that one slow day costs a handful of captures.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MARK_S: Final = 21_600.0
"""The high-water mark is forgotten after so long."""
ABOVE_MARK: Final = 1.1
"""Least reading that is worth another capture, as a multiple of the mark."""


class TriggerType(StrEnum):
    """Reading of a run that a trigger follows."""

    STEP_TIME_RISE = "StepTimeRise"
    HANGING = "Hanging"
    STRAGGLING = "Straggling"
    GOODPUT_LOW = "GoodputLow"
    STEP_TIME_SPREAD = "StepTimeSpread"


@dataclass(frozen=True, slots=True)
class TriggerDefaults:
    """Defaults of a kind of trigger; a threshold of None is that of the run's signal."""

    threshold: float | None
    settle_s: float


DEFAULTS: Final[Mapping[TriggerType, TriggerDefaults]] = {
    TriggerType.STEP_TIME_RISE: TriggerDefaults(0.10, 20),
    TriggerType.HANGING: TriggerDefaults(None, 0),
    TriggerType.STRAGGLING: TriggerDefaults(None, 0),
    TriggerType.GOODPUT_LOW: TriggerDefaults(None, 0),
    TriggerType.STEP_TIME_SPREAD: TriggerDefaults(0.20, 60),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRule:
    """One trigger of a schedule."""

    type: TriggerType
    threshold: float | None = None
    """A share from 0 to 1 (rise, spread: of the usual step time; goodput: the share itself); None is the default."""
    settle_s: float | None = None
    cool_down_s: float = 3600.0

    @property
    def limit(self) -> float | None:
        """The threshold, else the default of the type."""
        return self.threshold if self.threshold is not None else DEFAULTS[self.type].threshold

    @property
    def hold_s(self) -> float:
        """The settling time, else the default of the type."""
        return self.settle_s if self.settle_s is not None else DEFAULTS[self.type].settle_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A trigger that fired, as it is recorded with its capture."""

    type: TriggerType
    time: float
    attempt: int
    value: float


def is_worth(rule: TriggerRule, value: float, attempt: int, fired: Collection[Firing], now: float) -> bool:
    """Return whether a raised trigger is cool and above its high-water mark."""
    same = [each for each in fired if each.type is rule.type]
    if any(now - each.time < rule.cool_down_s for each in same):
        return False
    marks = [each.value for each in same if each.attempt == attempt and now - each.time < MARK_S]
    return not marks or value >= ABOVE_MARK * max(marks)
