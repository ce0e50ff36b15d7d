"""Triggers: readings of a run, their settling time, and the worth of a capture.

A trigger fires if its reading is at or above its threshold for its settling time. Then it cools down, and fires again
only if the reading is clearly higher than the highest one that it captured. This high-water mark is forgotten after
some hours and with the attempt, so that one slow day costs a handful of captures.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final

from mldiagnostics_api.runs.signals import FEWEST_HOSTS, FIRST_ACCOUNT_S
from mldiagnostics_api.schedules.trigger_sample import StepTimeWindows, TriggerSample

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


@dataclass(frozen=True, slots=True)
class TriggerReading:
    """A trigger at one moment; the message is empty if it is not raised."""

    value: float | None
    """Higher is worse; None without data."""
    message: str = ""


class TriggerMonitor:
    """The triggers of one schedule on one run.

    It has the baseline and the settling times. Earlier firings are an argument, as they outlive the process.
    """

    __slots__ = ("_raised", "_windows")

    def __init__(self) -> None:
        self._windows = StepTimeWindows()
        self._raised: dict[TriggerType, float] = {}

    def observe(
        self, run: TriggerSample, rules: Sequence[TriggerRule], fired: Collection[Firing], now: float
    ) -> list[tuple[Firing, str]]:
        """Add an observation; return the triggers that fire now, with their messages."""
        self._windows.observe(run, now)
        firing: list[tuple[Firing, str]] = []
        for rule in rules:
            reading = self._read(rule, run)
            if not reading.message or reading.value is None:
                self._raised.pop(rule.type, None)
                continue
            since = self._raised.setdefault(rule.type, now)
            self._raised[rule.type] = since = min(since, now)
            if now - since >= rule.hold_s and is_worth(rule, reading.value, run.attempt, fired, now):
                fire = Firing(type=rule.type, time=now, attempt=run.attempt, value=reading.value)
                firing.append((fire, reading.message))
        return firing

    def _read(self, rule: TriggerRule, run: TriggerSample) -> TriggerReading:
        limit = rule.limit
        if rule.type is TriggerType.STEP_TIME_RISE and limit is not None:
            rise = self._windows.baseline.rise(limit)
            return TriggerReading(rise, f"the step time is {rise:.0%} above its usual value" if rise else "")
        if rule.type is TriggerType.STEP_TIME_SPREAD and limit is not None:
            return _spread(run, limit)
        if rule.type is TriggerType.GOODPUT_LOW and limit is not None:
            return _low_goodput(run, limit)
        message = run.signals.get(rule.type, "")
        return TriggerReading(1.0 if message else 0.0, message)


def is_worth(rule: TriggerRule, value: float, attempt: int, fired: Collection[Firing], now: float) -> bool:
    """Return whether a raised trigger is cool and above its high-water mark."""
    same = [each for each in fired if each.type is rule.type]
    if any(now - each.time < rule.cool_down_s for each in same):
        return False
    marks = [each.value for each in same if each.attempt == attempt and now - each.time < MARK_S]
    return not marks or value >= ABOVE_MARK * max(marks)


def _spread(run: TriggerSample, limit: float) -> TriggerReading:
    times = run.host_step_times
    if len(times) < FEWEST_HOSTS:
        return TriggerReading(None)
    slowest = max(times, key=lambda host: times[host])
    usual = median(times.values())
    spread = times[slowest] / usual - 1 if usual > 0 else 0.0
    message = f"the steps of {slowest} take {spread:.0%} longer than the median of {len(times)} hosts"
    return TriggerReading(spread, message if spread >= limit else "")


def _low_goodput(run: TriggerSample, limit: float) -> TriggerReading:
    if run.goodput is None or run.elapsed_s < FIRST_ACCOUNT_S:
        return TriggerReading(None)
    is_low = run.goodput < limit
    return TriggerReading(1 - run.goodput, f"the goodput is {run.goodput:.1%}, below {limit:.0%}" if is_low else "")
