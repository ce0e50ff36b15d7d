"""The rules of a schedule for `mldiag capture`, with one target; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.schedules.budget import BudgetLimits
from mldiagnostics_api.schedules.decision import CaptureSubject, ScheduleRules, WantedCapture
from mldiagnostics_api.schedules.run_readings import RunReadings
from mldiagnostics_api.schedules.slots import next_start
from mldiagnostics_api.schedules.template import INTERVAL_S, captures_per_run
from mldiagnostics_api.schedules.timing import Every

from mldiagnostics_cli.schedules.manifest import ScheduleArguments, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.schedules.due import Due, DueCaptures

    from mldiagnostics_cli.captures.recurrence_arguments import RecurrenceArguments


_NAME: Final = "capture"
_TARGET: Final = "target"
"""The only target; a record belongs to the options of one command."""
_SHOWN_SLOTS: Final = 3


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Slots, triggers and budgets."""

    rules: ScheduleRules

    def starting(self, since: float) -> Recurrence:
        """Return the same with the first slot of a period at a time.

        Raises:
            ConfigurationError: No slot ever comes.
        """
        timing = self.rules.timing
        if isinstance(timing, Every):
            timing = Every(timing.period_s, since - timing.period_s)
        if timing is not None and timing.after(since) is None:
            raise ConfigurationError("--cron: no such day in the next 50 years; use other fields")
        return Recurrence(replace(self.rules, timing=timing))

    def due(
        self,
        memory: DueCaptures,
        made: Sequence[WantedCapture],
        now: float,
        *,
        readings: RunReadings | None = None,
        started: float = 0.0,
    ) -> Due:
        """Return the capture to make now, or that its budget is used.

        Args:
            memory: Kept between calls.
            made: Captures of the last hours.
            now: Unix time.
            readings: The run now; None without triggers.
            started: When the run started: slots before it are not its own.
        """
        subject = CaptureSubject(key=_TARGET, started=started)
        return memory.at(now, self.rules, [subject], readings=lambda _: readings or RunReadings(), made=made)

    def pause_s(self, now: float, longest_s: float) -> float:
        """Return the time until the next slot, if it comes soon."""
        timing = self.rules.timing
        slot = None if timing is None else next_start(timing, now)
        return longest_s if slot is None else min(longest_s, slot - now)

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


def recurrence_of(arguments: RecurrenceArguments) -> Recurrence:
    """Return the rules.

    Captures of slots alone have no limit by default; with triggers, those of a schedule in a cluster hold.

    Raises:
        ConfigurationError: An option is not valid.
    """
    given = ScheduleArguments(
        name=_NAME,
        every=arguments.every,
        cron=arguments.cron,
        time_zone=arguments.time_zone,
        triggers=arguments.triggers,
        pulse=arguments.pulse,
    )
    limits = BudgetLimits(
        captures_per_run=captures_per_run(makes_pulses=arguments.pulse)
        if arguments.per_day is None and arguments.triggers
        else arguments.per_day,
        interval_s=INTERVAL_S if arguments.triggers else 0.0,
    )
    return Recurrence(replace(rules(given), limits=limits))
