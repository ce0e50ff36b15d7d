"""The record of a schedule in its status: captures, refusals and conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import Final

from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import ScheduleConditionType, ScheduleReason
from mldiagnostics_api.schedules.budget import DAY_S, BudgetRefusal
from mldiagnostics_api.schedules.decision import WantedCapture
from mldiagnostics_api.schedules.triggers import Firing
from mldiagnostics_api.v1alpha1.schedule import (
    MAX_CAPTURES,
    MLDiagnosticsSchedule,
    ScheduledCapture,
    ScheduleRefusal,
    ScheduleStatus,
)
from mldiagnostics_api.v1alpha1.shared import StatusCondition

_MESSAGE: Final = 512


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a schedule makes captures, and why not."""

    reason: ScheduleReason
    message: str

    @property
    def is_ready(self) -> bool:
        """Whether it makes captures."""
        return self.reason is ScheduleReason.SCHEDULED


def entry_of(wanted: WantedCapture) -> ScheduledCapture:
    """Return the record of a capture whose object does not exist yet."""
    firing = wanted.firing
    return ScheduledCapture(
        name=wanted.name,
        run=wanted.target,
        time=_time(ceil(wanted.time)),  # not earlier, so that no interval is shorter than its limit
        slot_time=None if wanted.slot is None else _time(wanted.slot),
        trigger=firing.type if firing else None,
        attempt=firing.attempt if firing else None,
        value=round(firing.value, 4) if firing else None,
        pulse=wanted.is_pulse or None,
        message=wanted.message[:_MESSAGE],
        state="Planned",
    )


def wanted_of(entry: ScheduledCapture) -> WantedCapture:
    """Return a capture from its record."""
    firing = None
    if entry.trigger is not None:
        time, attempt = entry.time.timestamp(), entry.attempt or 0
        firing = Firing(type=entry.trigger, time=time, attempt=attempt, value=entry.value or 0.0)
    return WantedCapture(
        name=entry.name,
        target=entry.run,
        time=entry.time.timestamp(),
        message=entry.message or "",
        slot=entry.slot_time.timestamp() if entry.slot_time else None,
        firing=firing,
        bytes=entry.bytes,
        is_pulse=bool(entry.pulse),
    )


def recent_entries(status: ScheduleStatus | None, now: float) -> list[ScheduledCapture]:
    """Return the records that still count; those of a clock that was ahead do."""
    captures = (status.captures if status else None) or ()
    return [each for each in captures if each.time.timestamp() > now - DAY_S]


def with_refusal(
    refusals: Sequence[ScheduleRefusal], refused: BudgetRefusal, run: str, now: float
) -> list[ScheduleRefusal]:
    """Return the refusals with one more."""
    before = next((each.count for each in refusals if each.reason is refused.reason), 0)
    others = [each for each in refusals if each.reason is not refused.reason]
    newest = ScheduleRefusal(
        reason=refused.reason, count=before + 1, last_time=_time(now), run=run, message=refused.message[:_MESSAGE]
    )
    return [*others, newest]


def next_status(
    schedule: MLDiagnosticsSchedule,
    *,
    readiness: Readiness,
    summary: str,
    entries: Sequence[ScheduledCapture],
    refusals: Sequence[ScheduleRefusal],
    runs: int,
    next_capture: float | None,
    now: float,
) -> ScheduleStatus:
    """Return the status of a schedule.

    Args:
        schedule: The object; the times of conditions that do not change are kept.
        readiness: Whether it makes captures.
        summary: Times and triggers for people.
        entries: Captures of the last 24 hours.
        refusals: Refused captures by limit.
        runs: Number of runs that it applies to.
        next_capture: Time of the next slot.
        now: Current time.
    """
    before, generation = schedule.status or ScheduleStatus(), schedule.metadata.generation
    newest = max((each.time for each in entries), default=before.last_capture_time)
    blocking = max(refusals, key=lambda each: each.last_time, default=None)
    if blocking is not None and newest is not None and blocking.last_time < newest:
        blocking = None
    if blocking is not None and now - blocking.last_time.timestamp() >= DAY_S:
        blocking = None
    available = (
        ("True", ScheduleReason.AVAILABLE, "no limit refused the newest capture")
        if blocking is None
        else ("False", blocking.reason, blocking.message)
    )
    conditions = {each.type: each for each in before.conditions or ()}
    ready = ("True" if readiness.is_ready else "False", readiness.reason, readiness.message)
    return ScheduleStatus(
        observed_generation=generation,
        conditions=[
            _condition(conditions, ScheduleConditionType.READY, ready, generation, now),
            _condition(conditions, ScheduleConditionType.BUDGET_AVAILABLE, available, generation, now),
        ],
        schedule=summary,
        runs=runs,
        last_capture_time=newest,
        next_capture_time=None if next_capture is None else _time(next_capture),
        captures_last_day=len(entries),
        bytes_last_day=sum(each.bytes or 0 for each in entries),
        refused=sum(each.count for each in refusals),
        refusals=list(refusals) or None,
        captures=list(entries)[-MAX_CAPTURES:] or None,
    )


def _condition(
    before: Mapping[str, StatusCondition],
    kind: ScheduleConditionType,
    value: tuple[str, str, str],
    generation: int,
    now: float,
) -> StatusCondition:
    status, reason, message = value
    old = before.get(kind)
    changed = old.last_transition_time if old is not None and old.status == status else _time(now)
    return StatusCondition.model_validate(
        {
            "type": str(kind),
            "status": status,
            "reason": str(reason),
            "message": message,
            "lastTransitionTime": changed,
            "observedGeneration": generation,
        }
    )


def _time(seconds: float) -> datetime:
    """Return a time of whole seconds, as the API server keeps it."""
    return datetime.fromtimestamp(int(seconds), UTC)


def due_message(next_capture: float | None, *, runs: int) -> str:
    """Return when the next slot comes, for the condition.

    Args:
        next_capture: Time of the slot; None without one.
        runs: Number of runs that the schedule applies to.
    """
    due = f"the next slot is at {format_time(_time(next_capture))}" if next_capture else "triggers are followed"
    return due if runs else f"{due}; no active run matches spec.target now"
