"""The phase of a run, from its workload and its reports."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from mldiagnostics_api.formats import moment
from mldiagnostics_api.lifecycle.program import CRASH_LOOP
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase
from mldiagnostics_api.reports.reported_run import SILENT_S
from mldiagnostics_api.runs.attempts import PhaseState
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.v1alpha1 import MLRunStatus

DELETED: Final = "WorkloadDeleted"
"""Reason of a run whose workload was deleted before it ended."""


def next_phase(previous: MLRunStatus, facts: RunFacts, now: datetime, *, has_started: bool) -> PhaseState:
    """Return the phase of a run and its reason.

    Args:
        previous: Status that the object has.
        facts: Workload and reports.
        now: Current time in UTC, in whole seconds.
        has_started: Whether the run has started by now.
    """
    state = _newest_state(previous, facts, now, has_started=has_started)
    if state.phase not in FINISHED_RUN_PHASES:
        return replace(state, ended=None)
    # Clocks differ: a run does not end before it starts.
    ended = previous.completion_time or (state.ended or now).replace(microsecond=0)
    return replace(state, ended=max(ended, previous.start_time or ended))


def _newest_state(previous: MLRunStatus, facts: RunFacts, now: datetime, *, has_started: bool) -> PhaseState:
    if not facts.workload:
        return _reported_state(previous, facts, now)
    if facts.gone:
        return _state_after_deletion(facts)
    known = facts.lifecycle
    if known is None:
        phase = previous.phase or MLRunPhase.PENDING
        return PhaseState(phase, previous.reason or "Created", previous.message or "the workload was not observed yet")
    if facts.crashing is not None and has_started and known.phase not in FINISHED_RUN_PHASES and not known.suspended:
        crashing = facts.crashing
        return PhaseState(MLRunPhase.ACTIVE, CRASH_LOOP, f"{crashing.message}; {crashing.waiting}")
    if known.phase is MLRunPhase.PENDING and not known.suspended and has_started:
        return PhaseState(MLRunPhase.ACTIVE, "Running" if known.reason == "Starting" else known.reason, known.message)
    return PhaseState(known.phase, known.reason, known.message, known.ended)


def _state_after_deletion(facts: RunFacts) -> PhaseState:
    known, reported = facts.lifecycle, facts.reported
    if known and known.phase in FINISHED_RUN_PHASES:
        return PhaseState(known.phase, known.reason, known.message, known.ended)
    if reported and reported.phase != "Active":
        message = reported.message or "its program ended before the workload was deleted"
        return PhaseState(MLRunPhase(reported.phase), reported.reason or "Reported", message, moment(reported.ended))
    if facts.endless:
        return PhaseState(MLRunPhase.COMPLETED, DELETED, "the workload was deleted")
    return PhaseState(MLRunPhase.FAILED, DELETED, "the workload was deleted before it ended")


def _reported_state(previous: MLRunStatus, facts: RunFacts, now: datetime) -> PhaseState:
    reported = facts.reported
    if reported and reported.phase != "Active":
        return PhaseState(
            MLRunPhase(reported.phase), reported.reason or "Reported", reported.message, moment(reported.ended)
        )
    last = moment(reported.last_received) if reported else previous.last_heartbeat_time
    if last is None:
        return PhaseState(MLRunPhase.PENDING, "NotReported", "no process has reported this run yet")
    if previous.phase in FINISHED_RUN_PHASES and reported is None:
        return PhaseState(previous.phase, previous.reason or "", previous.message or "", previous.completion_time)
    alive = last if reported else max(last, facts.listening_since or last)
    if now - alive > timedelta(seconds=reported.silent_s if reported else SILENT_S):
        return PhaseState(MLRunPhase.FAILED, "Lost", "its processes stopped reporting", last)
    return PhaseState(MLRunPhase.ACTIVE, "Running", "its processes report")
