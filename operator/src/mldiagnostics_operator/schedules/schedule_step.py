"""One schedule at one moment: its next record and its captures; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import ScheduleReason
from mldiagnostics_api.schedules.budget import BudgetLimits, BudgetRefusal
from mldiagnostics_api.schedules.decision import CaptureSubject, ScheduleRules, WantedCapture
from mldiagnostics_api.schedules.due import Due, DueCaptures
from mldiagnostics_api.schedules.history import PastCapture, leaving
from mldiagnostics_api.schedules.record import (
    Readiness,
    due_message,
    entry_of,
    next_status,
    recent_entries,
    wanted_of,
    with_refusal,
)
from mldiagnostics_api.schedules.slots import next_start
from mldiagnostics_api.schedules.template import applies, rules_of, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.schedules.run_readings import RunReadings
    from mldiagnostics_api.v1alpha1.schedule import (
        MLDiagnosticsSchedule,
        ScheduledCapture,
        ScheduleRefusal,
        ScheduleStatus,
    )

    from mldiagnostics_operator.schedules.projections import ActiveRun, AutomaticCapture

KEEP: Final = 20
KEEP_WITH_FINDINGS: Final = 50
FULL_S: Final = 3600.0
"""A storage that was full is tried again after so long."""


@dataclass(slots=True)
class ScheduleMemory:
    """Parts of a schedule in the memory of a leader; the next one starts anew."""

    generation: int = 0
    rules: ScheduleRules | None = None
    problem: Readiness | None = None
    """Why the times are not valid."""
    due: DueCaptures = field(default_factory=DueCaptures)
    """By the name of the run."""
    rejected: Readiness | None = None
    """Why the newest capture could not be created."""


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """The result of one look at a schedule."""

    status: ScheduleStatus
    planned: Sequence[WantedCapture] = ()
    """Captures whose objects are to be created once the status is written."""
    refused: Sequence[tuple[WantedCapture, BudgetRefusal]] = ()
    leaving: Sequence[PastCapture] = ()


def limits_of(policy: Policy) -> BudgetLimits:
    """Return the administrator's limits on the automatic captures of a namespace."""
    return BudgetLimits(
        captures_per_run=policy.automatic_captures_per_run,
        captures=policy.automatic_captures_per_namespace,
        bytes=policy.automatic_bytes_per_namespace,
    )


def advance(
    schedule: MLDiagnosticsSchedule,
    memory: ScheduleMemory,
    *,
    runs: Iterable[ActiveRun],
    readings: Callable[[ActiveRun], RunReadings],
    captures: Collection[AutomaticCapture],
    others: Callable[[], Sequence[ScheduledCapture]],
    policy: BudgetLimits,
    is_admitted: bool,
    now: float,
) -> ScheduleStep:
    """Return the next status of a schedule and the work that follows from it.

    Args:
        schedule: The object as read last.
        memory: Kept between calls.
        runs: Active runs of the namespace.
        readings: Returns the readings of a run.
        captures: Captures that the schedule made and that exist.
        others: Returns the records of the other schedules of the namespace.
        policy: The administrator's limits.
        is_admitted: Whether the namespace may have so many schedules.
        now: Current time.
    """
    readiness = _readiness(schedule, memory, captures, is_admitted=is_admitted, now=now)
    ended = {each.name: each for each in captures if each.ended is not None}
    entries = [_finished(each, ended) for each in recent_entries(schedule.status, now)]
    subjects = {run.name: run for run in runs if applies(schedule, run.name, run.labels, run.workload)}
    due = Due()
    if readiness.is_ready and memory.rules is not None:
        due = memory.due.at(
            now,
            memory.rules,
            [CaptureSubject(key=run.name, started=run.started) for run in subjects.values()],
            readings=lambda name: readings(subjects[name]),
            made=[wanted_of(each) for each in entries],
            others=lambda: [wanted_of(each) for each in others()],
            policy=policy,
        )
    memory.due.forget(subjects, now)
    timing = memory.rules.timing if readiness.is_ready and memory.rules is not None else None
    slot = next_start(timing, now) if timing else None
    if readiness.is_ready:
        readiness = Readiness(readiness.reason, due_message(slot, runs=len(subjects)))
    status = next_status(
        schedule,
        readiness=memory.rejected or readiness,
        summary=summary(schedule),
        entries=[*entries, *map(entry_of, due.admitted)],
        refusals=_refusals(schedule.status, due, now),
        runs=len(subjects),
        next_capture=slot,
        now=now,
    )
    return ScheduleStep(status, due.admitted, due.refused, _leaving(schedule, captures))


def _readiness(
    schedule: MLDiagnosticsSchedule,
    memory: ScheduleMemory,
    captures: Collection[AutomaticCapture],
    *,
    is_admitted: bool,
    now: float,
) -> Readiness:
    """Return whether the schedule may capture, and its reason if not."""
    readiness = _prepare(schedule, memory, is_admitted)
    if readiness.is_ready and (since := _full_since(captures, now)) is not None:
        return _storage_full(since)
    return readiness


def _prepare(schedule: MLDiagnosticsSchedule, memory: ScheduleMemory, is_admitted: bool) -> Readiness:
    """Read the rules of a new generation once.

    The search for a slot may take a tenth of a second.
    """
    if memory.generation != schedule.metadata.generation or (memory.rules is None and memory.problem is None):
        memory.generation, memory.rules, memory.problem, memory.rejected = (
            schedule.metadata.generation,
            None,
            None,
            None,
        )
        try:
            memory.rules = rules_of(schedule)
        except ValueError as error:
            memory.problem = Readiness(ScheduleReason.INVALID, f"spec.schedule.{error}")
        else:
            timing = memory.rules.timing
            created = schedule.metadata.creation_timestamp
            if timing is not None and timing.after(created.timestamp() if created else 0.0) is None:
                message = "spec.schedule.cron: no such day in the next 50 years; use other fields"
                memory.problem = Readiness(ScheduleReason.NEVER_DUE, message)
    if not is_admitted:
        message = "the namespace has more schedules than policy.schedulesPerNamespace; delete some, or ask for more"
        return Readiness(ScheduleReason.TOO_MANY_SCHEDULES, message)
    if schedule.spec.suspend:
        return Readiness(ScheduleReason.SUSPENDED, "spec.suspend is true; set it to false to go on")
    return memory.problem or Readiness(ScheduleReason.SCHEDULED, "")


def _full_since(captures: Collection[AutomaticCapture], now: float) -> float | None:
    """Return when the newest capture found the storage full.

    None if another one may be made.
    """
    newest = max(
        (each for each in captures if each.ended is not None), key=lambda each: each.ended or 0.0, default=None
    )
    if newest is None or newest.ended is None or not newest.storage_was_full or now - newest.ended >= FULL_S:
        return None
    return newest.ended


def _storage_full(since: float) -> Readiness:
    moment = format_time(datetime.fromtimestamp(int(since), UTC))
    message = (
        f"the storage was full at {moment}; free space there, or keep fewer captures; it is tried again after an hour"
    )
    return Readiness(ScheduleReason.STORAGE_FULL, message)


def _refusals(status: ScheduleStatus | None, due: Due, now: float) -> list[ScheduleRefusal]:
    """Return the refusals of the status with those of this step."""
    refusals = list((status and status.refusals) or ())
    for wanted, refusal in due.refused:
        refusals = with_refusal(refusals, refusal, wanted.target, now)
    return refusals


def _finished(entry: ScheduledCapture, ended: Mapping[str, AutomaticCapture]) -> ScheduledCapture:
    """Return an entry as its capture ended; that of a pulse shrinks later."""
    if entry.state not in {"Created", "Finished"} or entry.name not in ended:
        return entry
    return entry.model_copy(update={"state": "Finished", "bytes": ended[entry.name].bytes})


def _leaving(schedule: MLDiagnosticsSchedule, captures: Collection[AutomaticCapture]) -> list[PastCapture]:
    history = schedule.spec.history
    keep = history.keep if history and history.keep is not None else KEEP
    with_findings = history.keep_with_findings if history and history.keep_with_findings is not None else None
    past = [
        PastCapture(name=each.name, uid=each.uid, ended=each.ended, has_findings=each.has_findings)
        for each in captures
        if each.ended is not None and not each.is_diagnosing
    ]
    kept = KEEP_WITH_FINDINGS if with_findings is None else with_findings
    return leaving(past, keep=keep, keep_with_findings=kept)
