"""The captures of one schedule that are due, look by look; pure.

Slots and triggers want captures, and budgets admit or refuse them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from mldiagnostics_api.schedules.budget import BudgetLimits, BudgetRefusal
from mldiagnostics_api.schedules.decision import (
    CaptureSubject,
    ScheduleRules,
    WantedCapture,
    budget_refusal,
    wanted_by_slot,
    wanted_by_trigger,
)
from mldiagnostics_api.schedules.run_readings import RunReadings
from mldiagnostics_api.schedules.trigger_monitor import TriggerMonitor
from mldiagnostics_api.schedules.triggers import Firing, TriggerType

RETRY_S: Final = 600.0
"""A trigger that a budget refused is tried again after so long."""
_OLD_SLOT_S: Final = 2 * 86_400.0


@dataclass(slots=True)
class Due:
    """The captures that are due at one moment."""

    admitted: list[WantedCapture] = field(default_factory=list)
    refused: list[tuple[WantedCapture, BudgetRefusal]] = field(default_factory=list)


@dataclass(slots=True)
class DueCaptures:
    """Settling times and refusals of one schedule.

    They belong to the keys of its targets, and last as long as the process. The captures that were made outlive it, so
    they are an argument.
    """

    monitor: TriggerMonitor = field(default_factory=TriggerMonitor)
    refused_slots: set[tuple[str, float]] = field(default_factory=set)
    refused_triggers: dict[tuple[str, TriggerType], float] = field(default_factory=dict)

    def at(
        self,
        now: float,
        rules: ScheduleRules,
        subjects: Sequence[CaptureSubject],
        *,
        readings: Callable[[str], RunReadings],
        made: Sequence[WantedCapture],
        others: Callable[[], Sequence[WantedCapture]] = tuple,
        policy: BudgetLimits | None = None,
    ) -> Due:
        """Return the captures that are due now.

        Args:
            now: Current time.
            rules: The schedule.
            subjects: Its targets that run now.
            readings: Returns the readings of a target, by its key.
            made: Captures of the schedule.
            others: Returns the captures of the other schedules of the namespace.
            policy: The administrator's limits; None does not limit.
        """
        due = Due()
        for wanted in self._wanted(rules, subjects, made=made, readings=readings, now=now):
            own = [*made, *due.admitted]
            refusal = budget_refusal(
                rules, wanted, own, policy=policy or BudgetLimits(), of_namespace=[*others(), *own], now=now
            )
            if refusal is None:
                due.admitted.append(wanted)
                continue
            self._remember(wanted, now)
            due.refused.append((wanted, refusal))
        return due

    def forget(self, subjects: Collection[str], now: float) -> None:
        """Drop what does not count any more.

        Args:
            subjects: Keys of the targets that run now.
            now: Current time.
        """
        self.monitor.forget(subjects)
        self.refused_slots = {each for each in self.refused_slots if now - each[1] <= _OLD_SLOT_S}
        self.refused_triggers = {key: time for key, time in self.refused_triggers.items() if abs(now - time) <= RETRY_S}

    def _wanted(
        self,
        rules: ScheduleRules,
        subjects: Sequence[CaptureSubject],
        *,
        made: Sequence[WantedCapture],
        readings: Callable[[str], RunReadings],
        now: float,
    ) -> Iterable[WantedCapture]:
        """Return the captures of slots and triggers.

        A target has one at a time, and a trigger comes first.
        """
        wanted: dict[str, WantedCapture] = {}
        if rules.triggers:
            fired: dict[str, list[Firing]] = {}
            for each in made:
                if each.firing is not None:
                    fired.setdefault(each.target, []).append(each.firing)
            for subject in subjects:
                key = subject.key
                firings = self.monitor.firing(key, readings(key), rules.triggers, fired.get(key, ()), now)
                for firing, message in firings:
                    if now - self.refused_triggers.get((subject.key, firing.type), -RETRY_S) >= RETRY_S:
                        wanted.setdefault(subject.key, wanted_by_trigger(rules, subject.key, firing, message))
        for each in wanted_by_slot(rules, subjects, made, now, refused=self.refused_slots):
            wanted.setdefault(each.target, each)
        return wanted.values()

    def _remember(self, refused: WantedCapture, now: float) -> None:
        if refused.slot is not None:
            self.refused_slots.add((refused.target, refused.slot))
        if refused.firing is not None:
            self.refused_triggers[refused.target, refused.firing.type] = now
