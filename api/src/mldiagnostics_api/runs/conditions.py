"""The conditions of a run."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

from mldiagnostics_api.names import FINISHED_RUN_PHASES, RunConditionType
from mldiagnostics_api.reports.reported_run import ReportedRun
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.v1alpha1 import MLRunStatus, StatusCondition
from mldiagnostics_api.v1alpha1.shared import condition_of

UNKNOWN_FOR_CLIENT: Final = "UnknownForClient"
"""Reason of conditions about hosts of a run whose only client, Google's SDK, reports none."""

_Truth = Literal["True", "False", "Unknown"]
_STATUS: Final[dict[bool | None, _Truth]] = {True: "True", False: "False", None: "Unknown"}

Verdict = tuple[bool | None, str, str]
"""Whether a condition holds, its reason and its message."""


def with_conditions(
    status: MLRunStatus, previous: MLRunStatus, facts: RunFacts, *, started: bool, now: datetime
) -> MLRunStatus:
    """Return a status with its conditions; one that holds as before keeps its time.

    Args:
        status: The status, with the conditions before.
        previous: Status that the object has.
        facts: Workload and reports.
        started: Whether the run has started.
        now: Current time in UTC, in whole seconds.
    """
    conditions = _kept_times(previous, list(_conditions(status, facts, started=started, now=now)))
    return status.model_copy(update={"conditions": conditions})


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


def reporting_verdict(reported: ReportedRun | None, now: datetime, *, ended: bool) -> Verdict:
    """Return the condition Reporting."""
    if ended:
        return False, "RunEnded", "the run has ended"
    if reported is None:
        return False, "NotReported", "no process has reported to the control plane"
    if not reported.hosts and reported.aliases:
        return None, UNKNOWN_FOR_CLIENT, "this client reports the run, but not its hosts"
    counted = sum(now <= host.lost_time for host in reported.hosts)
    if not counted:
        return False, "Lost", "all processes stopped reporting"
    message = f"{counted} of {len(reported.hosts)} known processes report"
    if reported.left_out:
        parts = ", ".join(reported.left_out)
        return True, "PartlyKept", f"{message}; not kept, as the namespace has used its share of the memory: {parts}"
    return True, "Reporting", message


def profilable_verdict(reported: ReportedRun | None, now: datetime, *, ended: bool) -> Verdict:
    """Return the condition Profilable."""
    if ended:
        return False, "RunEnded", "the run has ended"
    if reported is None:
        return None, "NotReported", "only a capture shows whether its hosts have profiler servers"
    if not reported.hosts and reported.aliases:
        return None, UNKNOWN_FOR_CLIENT, "this client does not report profiler servers; a capture shows them"
    alive = [host for host in reported.hosts if now <= host.lost_time]
    counted = sum(bool(host.ports) for host in alive)
    message = f"{counted} of {len(alive)} reporting processes have a profiler server"
    return counted > 0, "ProfilerServers" if counted else "NoProfilerServer", message
