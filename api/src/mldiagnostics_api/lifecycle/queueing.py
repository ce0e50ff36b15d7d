"""The verdict of Kueue about a workload, from its Workload objects."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mldiagnostics_api.conditions import condition_of
from mldiagnostics_api.disruptions import Evidence, workload_evidence
from mldiagnostics_api.lifecycle import MAX_REASON, MAX_TEXT, Lifecycle
from mldiagnostics_api.lifecycle.fields import mapping, mappings, text
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.workloads.kinds import Object

JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
"""Uid of the workload for which Kueue made the object; not every integration sets it."""
PENDING: Final = "Pending"
ADMISSION_CHECKS: Final = "AdmissionChecks"
MAX_OWNERS: Final = 8
"""Owners of a Workload that are kept; a group of pods has one for each pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueVerdict:
    """The state of a workload in its queue."""

    admitted: bool
    reason: str
    """Kueue's reason while it is not admitted: Pending, Inadmissible, Preempted, …"""
    message: str
    evicted: Evidence | None = None
    """The eviction, until the workload is admitted again."""


def owner_uids(workload: Object) -> tuple[str, ...]:
    """Return the uids of the workloads or pods that a Workload of Kueue stands for."""
    metadata = mapping(workload.get("metadata"))
    label = text(mapping(metadata.get("labels")).get(JOB_UID_LABEL))
    owners = [text(owner.get("uid")) for owner in mappings(metadata.get("ownerReferences"))]
    return tuple(dict.fromkeys(uid for uid in (label, *owners) if uid))[:MAX_OWNERS]


def queue_verdict(workload: Object, *, seen: datetime) -> QueueVerdict:
    """Read a Workload of Kueue.

    Args:
        workload: The object, of any version.
        seen: When it was read: not every condition has a time.
    """
    admitted, reserved = condition_of(workload, "Admitted"), condition_of(workload, "QuotaReserved")
    evicted, preempted = condition_of(workload, "Evicted"), condition_of(workload, "Preempted")
    if admitted is not None and admitted.holds:
        return QueueVerdict(admitted=True, reason="Admitted", message="")
    reason, messages = PENDING, []
    if reserved is not None and reserved.holds:
        reason, messages = ADMISSION_CHECKS, _open_checks(workload)
    elif reserved is not None:
        reason, messages = reserved.reason or PENDING, [reserved.message]
    evidence = None
    if evicted is not None and evicted.holds:
        why = preempted.message if preempted is not None and preempted.holds else evicted.message
        reason, messages = evicted.reason or reason, [why, *messages]
        evidence = workload_evidence(workload, seen=seen)
    message = "; ".join(dict.fromkeys(" ".join(each.split()) for each in messages if each))
    return QueueVerdict(admitted=False, reason=reason[:MAX_REASON], message=message[:MAX_TEXT], evicted=evidence)


def combined(verdicts: Collection[QueueVerdict]) -> QueueVerdict | None:
    """Return the verdict of several objects: one that waits holds all back."""
    waiting = (verdict for verdict in verdicts if not verdict.admitted)
    first = next(iter(verdicts), None)
    return min(waiting, key=lambda verdict: (verdict.evicted is None, verdict.reason, verdict.message), default=first)


def queued(state: Lifecycle, verdict: QueueVerdict | None) -> Lifecycle:
    """Return the state of a workload with the verdict of its queue.

    Args:
        state: State by the workload's own spec and status.
        verdict: Kueue's verdict; None without Kueue, or while it has no object of the workload.
    """
    if verdict is None or state.phase is not MLRunPhase.PENDING or not state.queue:
        return state
    if state.suspended and not verdict.admitted:
        return _held_back(state, state.message, verdict)
    if state.admitted is None:  # only its pods have a gate
        if verdict.admitted:
            return replace(state, admitted=True)
        waiting = replace(state, suspended=True, reason="Queued")
        return _held_back(waiting, f"its pods wait in queue {state.queue}", verdict)
    return state


def _held_back(state: Lifecycle, waits: str, verdict: QueueVerdict) -> Lifecycle:
    message = f"{waits}: {verdict.message}" if verdict.message else waits
    return replace(state, admitted=False, admission=verdict.reason, message=message[:MAX_TEXT])


def _open_checks(workload: Object) -> list[str]:
    """Return the admission checks that are not ready, with their messages."""
    checks = mappings(mapping(workload.get("status")).get("admissionChecks"))
    return [
        f"admission check '{text(check.get('name'))}' is {text(check.get('state'))}"
        + (f": {text(check.get('message'))}" if text(check.get("message")) else "")
        for check in checks
        if check.get("state") != "Ready"
    ]
