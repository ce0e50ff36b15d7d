"""The status of a run, folded from workload, reports and former status."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from mldiagnostics_api.lifecycle import MAX_REASON, MAX_TEXT
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase, RunConditionType
from mldiagnostics_api.runs.attempts import controller_attempt, next_attempts
from mldiagnostics_api.runs.conditions import with_conditions
from mldiagnostics_api.runs.display_name import display_name
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.runs.phase import next_phase
from mldiagnostics_api.runs.reported_parts import late_parts, reported_parts, run_hosts
from mldiagnostics_api.v1alpha1 import MLRunStatus
from mldiagnostics_api.v1alpha1.shared import is_true

HEARTBEAT_S: Final = 60
"""The heartbeat alone is written at most this often."""


def fold(previous: MLRunStatus, facts: RunFacts, now: datetime) -> MLRunStatus:
    """Return the status of a run.

    A run of a workload never leaves Completed or Failed; its last reports, and the account made from them, may arrive
    later. The fold of the same facts at the same time changes nothing.

    Args:
        previous: Status that the object has; an empty one for a new object.
        facts: Workload and reports.
        now: Current time in UTC.
    """
    name = _name(previous, facts)
    was_started = is_true(previous.conditions, RunConditionType.STARTED)
    if facts.workload and previous.phase in FINISHED_RUN_PHASES:
        return previous.model_copy(
            update={
                "observed_generation": facts.generation,
                "display_name": name,
                "storage_location": previous.storage_location or facts.storage or None,
                **late_parts(previous, facts.reported),
            }
        )
    now = now.replace(microsecond=0)
    has_started = was_started or facts.shows_start
    state = next_phase(previous, facts, now, has_started=has_started)
    started = has_started or state.phase is MLRunPhase.ACTIVE
    counts = replace(facts.counts, controller=max(controller_attempt(previous), facts.counts.controller))
    attempts = next_attempts(previous, state, counts, started=started, now=now)
    seen = state.ended or now
    status = previous.model_copy(
        update={
            "run_id": facts.run_id or None,
            "display_name": name,
            "storage_location": facts.storage or None,
            "phase": state.phase,
            "reason": state.reason[:MAX_REASON],
            "message": state.message[:MAX_TEXT] or None,
            "workload": facts.workload or None,
            "observed_generation": facts.generation,
            "attempt": attempts[-1].attempt if attempts else counts.controller,
            "attempts": attempts,
            "independent": (facts.is_independent if facts.lifecycle else previous.independent) or None,
            "start_time": previous.start_time or (min(facts.started or seen, seen) if started else None),
            "completion_time": state.ended,
            **(reported_parts(previous, facts.reported) if facts.reported else {}),
            "hosts": run_hosts(previous, facts, now, ended=state.ended is not None),
        }
    )
    return with_conditions(status, previous, facts, started=started, now=now)


def _name(previous: MLRunStatus, facts: RunFacts) -> str | None:
    """Return the name for people.

    One that was reported stays when the reports are forgotten. An object of an earlier version has it only as its
    display name, which may be what people chose in an earlier spec.
    """
    is_same_spec = previous.observed_generation == facts.generation
    kept = previous.reported_name or (previous.display_name if is_same_spec else "")
    reported = (facts.reported.name if facts.reported else "") or kept or ""
    workload = facts.workload.partition("/")[2]
    return display_name(chosen=facts.display_name, reported=reported, workload=workload) or None


def is_urgent(before: MLRunStatus, after: MLRunStatus) -> bool:
    """Return whether people wait for the change: phase, attempt or a condition."""
    return _key(before) != _key(after)


def is_worth_writing(before: MLRunStatus, after: MLRunStatus) -> bool:
    """Return whether the status differs by more than a recent heartbeat."""
    if before == after:
        return False
    old, new = before.last_heartbeat_time, after.last_heartbeat_time
    due = old is None or new is None or new - old >= timedelta(seconds=HEARTBEAT_S)
    return due or before != after.model_copy(update={"last_heartbeat_time": old})


def _key(status: MLRunStatus) -> tuple[object, ...]:
    conditions = tuple((condition.type, condition.status) for condition in status.conditions or ())
    return status.phase, status.reason, status.attempt, conditions
