"""The rules of a schedule for `mldiag capture`, with one target; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.schedules.budget import BudgetLimits
from mldiagnostics_api.schedules.decision import (
    CaptureSubject,
    ScheduleRules,
    WantedCapture,
    budget_refusal,
    wanted_by_slot,
    wanted_by_trigger,
)
from mldiagnostics_api.schedules.slots import next_start
from mldiagnostics_api.schedules.template import CAPTURES_PER_RUN, INTERVAL_S, rules_of
from mldiagnostics_api.schedules.timing import Every, parse_period
from mldiagnostics_api.schedules.triggers import TriggerMonitor
from mldiagnostics_api.v1alpha1.schedule import read_schedule

from mldiagnostics_cli.schedules.manifest import ScheduleArguments, manifest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mldiagnostics_api.schedules.trigger_sample import TriggerSample

__all__ = ["Recurrence", "RecurrenceArguments", "Watch", "recurrence_of"]

TARGET: Final = "target"
"""The only target; a record belongs to the options of one command."""
_SHOWN_SLOTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceArguments:
    """The options of `mldiag capture` that repeat it.

    Periods are texts such as `10m`; triggers are `Type` or `Type=PERCENT`.
    """

    every: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    triggers: Sequence[str] = ()
    per_day: int | None = None

    @property
    def are_given(self) -> bool:
        """Whether the capture is to be repeated."""
        return bool(self.every or self.cron or self.triggers)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Slots, triggers and budgets."""

    rules: ScheduleRules

    def describe(self, now: float) -> list[str]:
        """Return what would be done, for a dry run."""
        timing, limits = self.rules.timing, self.rules.limits
        lines: list[str] = []
        slot, slots = now, list[str]()
        while timing is not None and len(slots) < _SHOWN_SLOTS:
            following = next_start(timing, slot)
            if following is None:
                break
            slots.append(format_time(datetime.fromtimestamp(following, UTC)))
            slot = following
        if slots:
            lines.append(f"Slots: {', '.join(slots)}, …")
        lines += [
            f"Trigger: {rule.type}" + (f" from {rule.limit:.0%}" if rule.limit else "") for rule in self.rules.triggers
        ]
        most = "any number" if limits.captures_per_run is None else f"at most {limits.captures_per_run}"
        pause = f", at least {limits.interval_s:g} s apart" if limits.interval_s else ""
        return [*lines, f"Budget: {most} in 24 hours{pause}"]


def recurrence_of(arguments: RecurrenceArguments, since: float) -> Recurrence:
    """Return the rules.

    Captures of slots alone have no limit by default; with triggers, those of a schedule in a cluster hold.

    Args:
        arguments: The options.
        since: Unix time of the first capture of a period.

    Raises:
        ConfigurationError: An option is not valid.
    """
    if arguments.every:
        try:
            parse_period(arguments.every)
        except ValueError as error:
            raise ConfigurationError(f"--{error}") from None
    body = manifest(
        ScheduleArguments(
            name="capture",
            every=arguments.every,
            cron=arguments.cron,
            time_zone=arguments.time_zone,
            triggers=arguments.triggers,
        )
    )
    metadata = {"name": "capture", "namespace": "local", "uid": "local"}
    rules = rules_of(read_schedule({**body, "metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"}}))
    timing = rules.timing
    if isinstance(timing, Every):
        timing = Every(timing.period_s, since - timing.period_s)
    if timing is not None and timing.after(since) is None:
        raise ConfigurationError("--cron: no such day in the next 50 years; use other fields")
    limits = BudgetLimits(
        captures_per_run=CAPTURES_PER_RUN if arguments.per_day is None and arguments.triggers else arguments.per_day,
        interval_s=INTERVAL_S if arguments.triggers else 0.0,
    )
    return Recurrence(ScheduleRules(name="capture", uid="local", timing=timing, triggers=rules.triggers, limits=limits))


@dataclass(slots=True)
class Watch:
    """Settling times, baselines and refusals between two looks."""

    recurrence: Recurrence
    monitor: TriggerMonitor = field(default_factory=TriggerMonitor)
    refused: set[tuple[str, float]] = field(default_factory=set)
    remark: str = ""
    """Why the newest capture was refused."""

    def next(
        self, made: Collection[WantedCapture], sample: TriggerSample | None, now: float, *, started: float = 0.0
    ) -> WantedCapture | None:
        """Return the capture to make now; None if none is due, or its budget is used.

        Args:
            made: Captures of the last hours.
            sample: The run now; None without triggers.
            now: Unix time.
            started: When the run started: slots before it are not its own.
        """
        rules, self.remark = self.recurrence.rules, ""
        wanted: list[WantedCapture] = []
        if sample is not None and rules.triggers:
            fired = [each.firing for each in made if each.firing is not None]
            firings = self.monitor.observe(sample, rules.triggers, fired, now)
            wanted = [wanted_by_trigger(rules, TARGET, firing, message) for firing, message in firings]
        subject = CaptureSubject(key=TARGET, started=started)
        wanted += wanted_by_slot(rules, [subject], made, now, refused=self.refused)
        for each in wanted[:1]:
            used = budget_refusal(rules, each, made, policy=BudgetLimits(), of_namespace=made, now=now)
            if used is None:
                return each
            if each.slot is not None:
                self.refused.add((TARGET, each.slot))
            self.remark = f"{each.message}; not captured: {used.message}"
        return None
