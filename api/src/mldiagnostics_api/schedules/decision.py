"""One schedule at one moment: the captures that are due, and their budgets."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mldiagnostics_api.formats import format_time
from mldiagnostics_api.schedules.budget import PULSES_PER_CAPTURE, BudgetLimits, BudgetRefusal, Spending, refusal
from mldiagnostics_api.schedules.slots import capture_name, due_slot, jitter_offset, slot_cause, trigger_cause
from mldiagnostics_api.schedules.timing import Timing
from mldiagnostics_api.schedules.triggers import Firing, TriggerRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRules:
    """The parts of a schedule that decide."""

    name: str
    uid: str
    timing: Timing | None = None
    jitter_s: float = 0.0
    triggers: Sequence[TriggerRule] = ()
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    makes_pulses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSubject:
    """A run, or another target of a schedule."""

    key: str
    started: float = 0.0
    """Slots before it are not of this target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCapture:
    """A capture that a slot or a trigger causes; once admitted, its record."""

    name: str
    target: str
    time: float
    message: str
    slot: float | None = None
    firing: Firing | None = None
    bytes: int | None = None
    is_pulse: bool = False

    @property
    def spending(self) -> Spending:
        """Its share of the budget of its schedule, in which pulses count whole."""
        return Spending(target=self.target, time=self.time, bytes=self.bytes)

    @property
    def spending_of_policy(self) -> Spending:
        """Its share of the administrator's limits."""
        return replace(self.spending, pulses=1 if self.is_pulse else PULSES_PER_CAPTURE)


def wanted_by_slot(
    rules: ScheduleRules,
    subjects: Iterable[CaptureSubject],
    made: Collection[WantedCapture],
    now: float,
    *,
    refused: Collection[tuple[str, float]] = (),
) -> list[WantedCapture]:
    """Return the captures of the slots that are due and neither made nor refused.

    Args:
        rules: The schedule.
        subjects: Its targets that run now.
        made: Captures that it made in the last hours.
        now: Current time.
        refused: Targets and slots that were refused.
    """
    if rules.timing is None:
        return []
    done: dict[str, set[float]] = {}
    for each in made:
        if each.slot is not None:
            done.setdefault(each.target, set()).add(each.slot)
    for target, slot in refused:
        done.setdefault(target, set()).add(slot)
    wanted: list[WantedCapture] = []
    for subject in subjects:
        offset_s = jitter_offset(rules.uid, subject.key, rules.jitter_s)
        due = due_slot(rules.timing, now, offset_s=offset_s, done=done.get(subject.key, ()))
        if due is not None and due >= subject.started:
            wanted.append(_of_slot(rules, subject.key, due, now))
    return wanted


def wanted_by_trigger(rules: ScheduleRules, target: str, firing: Firing, message: str) -> WantedCapture:
    """Return the capture of a trigger that fires."""
    cause = trigger_cause(firing.type, firing.time)
    name = capture_name(rules.name, rules.uid, target=target, cause=cause)
    return WantedCapture(
        name=name,
        target=target,
        time=firing.time,
        message=f"{firing.type}: {message}",
        firing=firing,
        is_pulse=rules.makes_pulses,
    )


def budget_refusal(
    rules: ScheduleRules,
    wanted: WantedCapture,
    made: Collection[WantedCapture],
    *,
    policy: BudgetLimits,
    of_namespace: Collection[WantedCapture],
    now: float,
) -> BudgetRefusal | None:
    """Return why a capture is refused; None if it may be made.

    Args:
        rules: The schedule.
        wanted: The capture.
        made: Captures of the schedule.
        policy: The administrator's limits.
        of_namespace: Captures of all schedules of the namespace; they count for the administrator's limits, and for
            the intervals of this schedule, so that two schedules on one run do not double its captures.
        now: Current time.
    """
    spent = [each.spending for each in made]
    together = [each.spending_of_policy for each in of_namespace]
    interval = BudgetLimits(interval_s=rules.limits.interval_s)
    return (
        refusal(rules.limits, spent, wanted.target, now, scope=f"schedule '{rules.name}'")
        or refusal(interval, together, wanted.target, now, scope=f"schedule '{rules.name}'")
        or refusal(policy, together, wanted.target, now, scope="policy of the namespace")
    )


def _of_slot(rules: ScheduleRules, target: str, slot: float, now: float) -> WantedCapture:
    name = capture_name(rules.name, rules.uid, target=target, cause=slot_cause(slot))
    message = f"the slot of {format_time(datetime.fromtimestamp(slot, UTC))}"
    return WantedCapture(name=name, target=target, time=now, message=message, slot=slot, is_pulse=rules.makes_pulses)
