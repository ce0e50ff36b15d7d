"""The status of a run, folded from workload, reports and former status."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Self

from mldiagnostics_api.lifecycle import MAX_REASON, MAX_TEXT, Lifecycle
from mldiagnostics_api.lifecycle.program import CRASH_LOOP, PodProgram
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase, RunConditionType
from mldiagnostics_api.reports.reported_run import SILENT_S, ReportedRun
from mldiagnostics_api.runs.attempts import PhaseState, RestartCounts, controller_attempt, next_attempts
from mldiagnostics_api.runs.display_name import display_name
from mldiagnostics_api.runs.reported_parts import (
    is_silent,
    moment,
    profilable_verdict,
    reported_hosts,
    reported_parts,
    reporting_verdict,
)
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunHosts, StatusCondition
from mldiagnostics_api.v1alpha1.shared import condition_of, is_true

HEARTBEAT_S: Final = 60
"""The heartbeat alone is written at most this often."""

DELETED: Final = "WorkloadDeleted"
"""Reason of a run whose workload was deleted before it ended."""

_Truth = Literal["True", "False", "Unknown"]
_STATUS: Final[dict[bool | None, _Truth]] = {True: "True", False: "False", None: "Unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Everything that is known about a run now, without its history."""

    run_id: str
    workload: str = ""
    """Kind and name, such as `JobSet/trainer`; empty for a run without a workload."""
    display_name: str = ""
    """`spec.displayName`."""
    storage: str = ""
    """Root that the operator uses for its files; empty without one."""
    generation: int = 1
    lifecycle: Lifecycle | None = None
    """State of the workload; None if it is not observed."""
    gone: bool = False
    """Whether the workload was deleted."""
    endless: bool = False
    """Whether deletion is the usual end of the workload's kind."""
    reported: ReportedRun | None = None
    program: PodProgram | None = None
    """The container of the pod that leads; None if it is not known."""
    crashing: PodProgram | None = None
    """A container whose restart the kubelet delays: that of the pod that leads before others; None without one."""
    restarts: int | None = None
    """Restarts of the containers of all pods; None if no pod is known."""

    @property
    def is_independent(self) -> bool:
        """Whether no rank leads the processes, neither of the kind nor of a launcher."""
        world_size = self.reported.world_size if self.reported else None
        return self.lifecycle is not None and self.lifecycle.independent and (world_size or 1) == 1

    def without_account(self) -> Self:
        """Return the facts without steps and goodput, if the processes are independent."""
        if not self.is_independent or self.reported is None:
            return self
        hosts = [replace(host, step=None, changed=None) for host in self.reported.hosts]
        nothing: dict[str, Any] = {"step": None, "step_time_seconds": None, "progress_changed": None, "goodput": None}
        return replace(self, reported=replace(self.reported, hosts=hosts, **nothing))

    @property
    def counts(self) -> RestartCounts:
        """Counts of the restarts."""
        if self.is_independent:
            return RestartCounts()
        known, reported = self.lifecycle, self.reported
        if known is None:
            return RestartCounts(controller=reported.attempt if reported else 0, counts_pods=True)
        return RestartCounts(controller=known.attempt, program=self.program, counts_pods=known.counts_pods)


def fold(previous: MLRunStatus, facts: RunFacts, now: datetime) -> MLRunStatus:
    """Return the status of a run.

    A run of a workload never leaves Completed or Failed; its last reports, and the account made from them, may arrive
    later. The fold of the same facts at the same time changes nothing.

    Args:
        previous: Status that the object has; an empty one for a new object.
        facts: Workload and reports.
        now: Current time in UTC.
    """
    was_started = is_true(previous.conditions, RunConditionType.STARTED)
    if facts.workload and previous.phase in FINISHED_RUN_PHASES:
        return previous.model_copy(
            update={
                "observed_generation": facts.generation,
                "display_name": _name(previous, facts),
                "storage_location": previous.storage_location or facts.storage or None,
                **_late_parts(previous, facts.reported),
            }
        )
    now = now.replace(microsecond=0)
    has_started = was_started or _has_started(facts)
    state = _state(previous, facts, now, has_started=has_started)
    started = has_started or state.phase is MLRunPhase.ACTIVE
    counts = replace(facts.counts, controller=max(controller_attempt(previous), facts.counts.controller))
    attempts = next_attempts(previous, state, counts, started=started, now=now)
    status = previous.model_copy(
        update={
            "run_id": facts.run_id or None,
            "display_name": _name(previous, facts),
            "storage_location": facts.storage or None,
            "phase": state.phase,
            "reason": state.reason[:MAX_REASON],
            "message": state.message[:MAX_TEXT] or None,
            "workload": facts.workload or None,
            "observed_generation": facts.generation,
            "attempt": attempts[-1].attempt if attempts else counts.controller,
            "attempts": attempts,
            "independent": (facts.is_independent if facts.lifecycle else previous.independent) or None,
            "start_time": previous.start_time or (_start(facts, state.ended or now) if started else None),
            "completion_time": state.ended,
            **(reported_parts(previous, facts.reported) if facts.reported else {}),
            "hosts": _hosts(previous, facts, now, ended=state.ended is not None),
        }
    )
    conditions = list(_conditions(status, facts, started=started, now=now))
    return status.model_copy(update={"conditions": _kept_times(previous, conditions)})


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


def _late_parts(previous: MLRunStatus, reported: ReportedRun | None) -> dict[str, object]:
    """Return the parts of a run that has ended which its last reports complete.

    A leader that has no newer report than the status changes nothing.
    """
    last = moment(reported.last_received) if reported else None
    if reported is None or last is None or last < (previous.last_heartbeat_time or last):
        return {}
    return {name: part for name, part in reported_parts(previous, reported).items() if part is not None}


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


def _state(previous: MLRunStatus, facts: RunFacts, now: datetime, *, has_started: bool) -> PhaseState:
    state = _newest_state(previous, facts, now, has_started=has_started)
    if state.phase not in FINISHED_RUN_PHASES:
        return replace(state, ended=None)
    # Clocks differ: a run does not end before it starts.
    ended = previous.completion_time or (state.ended or now).replace(microsecond=0)
    return replace(state, ended=max(ended, previous.start_time or ended))


def _newest_state(previous: MLRunStatus, facts: RunFacts, now: datetime, *, has_started: bool) -> PhaseState:
    if not facts.workload:
        return _reported_state(previous, facts.reported, now)
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


def _reported_state(previous: MLRunStatus, reported: ReportedRun | None, now: datetime) -> PhaseState:
    if reported and reported.phase != "Active":
        return PhaseState(
            MLRunPhase(reported.phase), reported.reason or "Reported", reported.message, moment(reported.ended)
        )
    last = moment(reported.last_received) if reported else previous.last_heartbeat_time
    if last is None:
        return PhaseState(MLRunPhase.PENDING, "NotReported", "no process has reported this run yet")
    if previous.phase in FINISHED_RUN_PHASES and reported is None:
        return PhaseState(previous.phase, previous.reason or "", previous.message or "", previous.completion_time)
    if is_silent(last, now, reported.silent_s if reported else SILENT_S):
        return PhaseState(MLRunPhase.FAILED, "Lost", "its processes stopped reporting", last)
    return PhaseState(MLRunPhase.ACTIVE, "Running", "its processes report")


def _hosts(previous: MLRunStatus, facts: RunFacts, now: datetime, *, ended: bool) -> RunHosts | None:
    """Return the hosts; of an ended run those of its last moments."""
    before = previous.hosts or RunHosts()
    counted = before if ended and previous.hosts else reported_hosts(facts.reported, now)
    expected = facts.lifecycle.hosts if facts.lifecycle else None
    if expected is None:
        expected = (facts.reported.world_size if facts.reported else None) or before.expected
    if expected is None and counted.reporting is None:
        return None
    total = "?" if expected is None else str(expected)
    is_unknown = counted.reporting is None and facts.reported is not None
    restarts = before.restarts if ended or facts.restarts is None else facts.restarts
    summary = f"{'?' if is_unknown else counted.reporting or 0}/{total}"
    return counted.model_copy(update={"expected": expected, "summary": summary, "restarts": restarts or None})


def _conditions(status: MLRunStatus, facts: RunFacts, *, started: bool, now: datetime) -> Iterator[StatusCondition]:
    def condition(kind: RunConditionType, holds: bool | None, reason: str, message: str) -> StatusCondition:
        return StatusCondition(
            type=kind,
            status=_STATUS[holds],
            reason=reason or "Unknown",
            message=message,
            last_transition_time=now,
            observed_generation=facts.generation,
        )

    known, ended = facts.lifecycle, status.phase in FINISHED_RUN_PHASES
    if known is not None:
        queue = f" by queue {known.queue}" if known.queue else ""
        admitted = True if started and not known.suspended else known.admitted
        words = {True: f"admitted{queue}", False: known.message, None: "only the pods show whether it is admitted"}
        reasons = {True: "Admitted", False: known.admission or known.reason, None: "Unknown"}
        yield condition(RunConditionType.ADMITTED, admitted, reasons[admitted], words[admitted])
    elif (before := condition_of(status.conditions, RunConditionType.ADMITTED)) is not None:
        yield before
    reason, message = ("Started", "the run has started") if started else (status.reason or "", status.message or "")
    yield condition(RunConditionType.STARTED, started, reason, message)
    yield condition(RunConditionType.REPORTING, *reporting_verdict(facts.reported, now, ended=ended))
    yield condition(RunConditionType.PROFILABLE, *profilable_verdict(facts.reported, now, ended=ended))
    yield condition(RunConditionType.COMPLETE, ended, status.reason or "", status.message or "")


def _kept_times(previous: MLRunStatus, conditions: Sequence[StatusCondition]) -> list[StatusCondition]:
    """Keep the times of conditions that hold as before."""
    kept: list[StatusCondition] = []
    for condition in conditions:
        before = condition_of(previous.conditions, condition.type)
        time = before.last_transition_time if before and before.status == condition.status else None
        kept.append(condition.model_copy(update={"last_transition_time": time}) if time else condition)
    # Conditions of other parts, such as signals, stay.
    known = {condition.type for condition in kept} | set(RunConditionType)
    return kept + [condition for condition in previous.conditions or () if condition.type not in known]


def _has_started(facts: RunFacts) -> bool:
    known = facts.lifecycle
    if facts.reported is not None or facts.crashing is not None:
        return True
    return known is not None and known.phase in FINISHED_RUN_PHASES and known.ran


def _start(facts: RunFacts, seen: datetime) -> datetime:
    reported = moment(facts.reported.started) if facts.reported else None
    return min((facts.lifecycle.started if facts.lifecycle else None) or reported or seen, seen)


def _key(status: MLRunStatus) -> tuple[object, ...]:
    conditions = tuple((condition.type, condition.status) for condition in status.conditions or ())
    return status.phase, status.reason, status.attempt, conditions
