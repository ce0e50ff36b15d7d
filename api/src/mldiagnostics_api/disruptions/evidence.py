"""Evidence of disruptions, read from nodes, events and workloads.

Only markers that a component sets on purpose count; objects without any give no evidence.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from mldiagnostics_api.conditions import ConditionView, condition_of
from mldiagnostics_api.disruptions.causes import DisruptionCause as Cause
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.workloads.kinds import Object
from mldiagnostics_api.workloads.owners import ObjectReference

DETAIL_LENGTH: Final = 256
"""Characters of another component's message that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A cause that one object shows."""

    cause: Cause
    time: datetime
    subject: str
    """Kind and name of the object, as in messages."""
    detail: str
    node: str = ""
    """The node of the pod, or the node itself."""


_LABELS: Final = {("cloud.google.com/active-node-maintenance", "ONGOING"): Cause.MAINTENANCE}
_TAINTS: Final = {
    "aws-node-termination-handler/spot-itn": Cause.PREEMPTION,
    "aws-node-termination-handler/scheduled-maintenance": Cause.MAINTENANCE,
    "cloud.google.com/maintenance-window-started": Cause.MAINTENANCE,
    "cloud.google.com/impending-node-termination": Cause.NODE_SHUTDOWN,  # maintenance or a spot machine
    "node.kubernetes.io/out-of-service": Cause.NODE_LOST,
    "node.kubernetes.io/unreachable": Cause.NODE_LOST,
}
_NODE_CONDITIONS: Final = {"PreemptScheduled": Cause.PREEMPTION, "VMEventScheduled": Cause.MAINTENANCE}
"""Of the problem detector on Azure: True while the event is pending."""
_EVENTS: Final = {
    ("Pod", "Preempted"): (Cause.PREEMPTION, ""),
    ("Pod", "Preempting"): (Cause.PREEMPTION, ""),
    ("Pod", "NodeNotReady"): (Cause.NODE_LOST, ""),
    ("Pod", "Evicted"): (Cause.EVICTION, ""),
    ("Pod", "ScaleDown"): (Cause.EVICTION, "node scale down"),
    ("Pod", "TaintManagerEviction"): (Cause.EVICTION, "Marking for deletion"),
    ("Node", "PreemptScheduled"): (Cause.PREEMPTION, ""),
    ("Node", "RebootScheduled"): (Cause.MAINTENANCE, ""),
    ("Node", "RedeployScheduled"): (Cause.MAINTENANCE, ""),
    ("Node", "TerminateScheduled"): (Cause.MAINTENANCE, ""),
    ("Node", "Shutdown"): (Cause.NODE_SHUTDOWN, ""),
    ("Node", "NodeNotReady"): (Cause.NODE_LOST, ""),
    ("Node", "Rebooted"): (Cause.NODE_LOST, ""),
    ("Node", "RemovingNode"): (Cause.NODE_LOST, ""),
    ("Node", "DeletingNode"): (Cause.NODE_LOST, ""),
}
"""Kind and reason of an event: its cause, and a part of the message that it needs."""
CREATION_FAILURES: Final = (
    "FailedCreate",  # Job, StatefulSet, ReplicaSet, LeaderWorkerSet
    "FailedCreatePod",  # kubeflow.org
    "FailedToCreateHeadPod",  # RayCluster
    "FailedToCreateWorkerPod",
    "JobCreationFailed",  # JobSet
)
"""Reasons of the events of controllers that could not create pods or parts of a workload."""
_QUOTA_EXCEEDED: Final = "exceeded quota"
"""Words of the API server; no field has them."""
_KUEUE_EVICTIONS: Final = {
    "Preempted": Cause.PREEMPTION,
    "NodeFailures": Cause.NODE_LOST,
    "AdmissionCheck": Cause.QUOTA,
    "ClusterQueueStopped": Cause.QUOTA,
    "LocalQueueStopped": Cause.QUOTA,
    "DeactivatedDueToMaximumExecutionTimeExceeded": Cause.DEADLINE,
    "PodsReadyTimeout": Cause.SCHEDULING,
    "DeactivatedDueToAdmissionCheck": Cause.QUOTA,
    "DeactivatedDueToRequeuingLimitExceeded": Cause.SCHEDULING,
    "Deactivated": Cause.SUSPENDED,
    "InactiveWorkload": Cause.SUSPENDED,
}
_JOB_FAILURES: Final = {"DeadlineExceeded": Cause.DEADLINE}


def event_evidence(event: Object) -> Evidence | None:
    """Return the cause that an event records; None for any other event."""
    subject = event.get("involvedObject") or event.get("regarding") or {}
    message = event.get("message") or event.get("note") or ""
    kind, name, reason = subject.get("kind") or "", subject.get("name") or "", event.get("reason") or ""
    entry = _EVENTS.get((kind, reason))
    if entry is None and reason in CREATION_FAILURES and kind != "Pod":
        entry = (Cause.QUOTA, _QUOTA_EXCEEDED)
    last = (event.get("series") or {}).get("lastObservedTime")
    fields = ("lastTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp")
    time = next(filter(None, map(optional_time, (last, *(event.get(field) for field in fields)))), None)
    if entry is None or time is None or entry[1] not in message:
        return None
    node = name if kind == "Node" else ""
    detail = shortened(f"{reason}: {message}")
    return Evidence(cause=entry[0], time=time, subject=f"{kind.lower()} '{name}'", detail=detail, node=node)


@dataclass(frozen=True, slots=True)
class CreationFailure:
    """A refusal to create the pods of an object."""

    reference: ObjectReference
    evidence: Evidence

    @classmethod
    def of(cls, event: Object) -> Self | None:
        """Read an event; None for any other than a refusal that lasts."""
        subject, evidence = event.get("involvedObject") or {}, event_evidence(event)
        if evidence is None or event.get("reason") not in CREATION_FAILURES or not subject.get("uid"):
            return None
        names = (subject.get(key) or "" for key in ("apiVersion", "kind", "namespace", "name", "uid"))
        return cls(ObjectReference(*names), evidence)


def node_evidence(name: str, node: Object | None, *, seen: datetime) -> Evidence | None:
    """Return the cause that a node shows; None if it shows none.

    Args:
        name: Name of the node.
        node: The node; None if it does not exist any more.
        seen: When the node was read: not every taint has a time.
    """
    if node is None:
        return _of_node(name, Cause.NODE_LOST, seen, "the node no longer exists")
    labels = node["metadata"].get("labels") or {}
    for (key, value), cause in _LABELS.items():
        if labels.get(key) == value:
            return _of_node(name, cause, seen, f"label {key}={value}")
    for kind, cause in _NODE_CONDITIONS.items():
        condition = condition_of(node, kind)
        if condition is not None and condition.holds:
            return _of_node(name, cause, condition.since or seen, f"{kind}: {explained(condition)}")
    taints = {taint.get("key"): taint for taint in (node.get("spec") or {}).get("taints") or ()}
    for key, cause in _TAINTS.items():
        if taint := taints.get(key):
            return _of_node(name, cause, optional_time(taint.get("timeAdded")) or seen, f"taint {key}")
    ready = condition_of(node, "Ready")
    if ready is not None and not ready.holds:
        cause = Cause.NODE_SHUTDOWN if "shutting down" in ready.message else Cause.NODE_LOST
        return _of_node(name, cause, ready.since or seen, explained(ready))
    return None


def workload_evidence(workload: Object, *, seen: datetime) -> Evidence | None:
    """Return the cause that a workload or its Kueue Workload shows, or None."""
    evicted, failed = condition_of(workload, "Evicted"), condition_of(workload, "Failed")
    subject = f"{workload.get('kind', 'workload')} '{workload['metadata']['name']}'"
    for condition, causes in ((evicted, _KUEUE_EVICTIONS), (failed, _JOB_FAILURES)):
        cause = causes.get(condition.reason) if condition is not None and condition.holds else None
        if condition is not None and cause:
            detail = explained(condition)
            return Evidence(cause=cause, time=condition.since or seen, subject=subject, detail=detail)
    if workload["metadata"].get("deletionTimestamp"):
        deleted = optional_time(workload["metadata"]["deletionTimestamp"]) or seen
        return Evidence(cause=Cause.DELETED, time=min(deleted, seen), subject=subject, detail="was deleted")
    suspended = condition_of(workload, "Suspended")
    if (workload.get("spec") or {}).get("suspend") is True:
        since = suspended.since if suspended is not None and suspended.holds else None
        return Evidence(cause=Cause.SUSPENDED, time=since or seen, subject=subject, detail="is suspended")
    return None


def _of_node(name: str, cause: Cause, time: datetime, detail: str) -> Evidence:
    return Evidence(cause=cause, time=time, subject=f"node '{name}'", detail=shortened(detail), node=name)


def explained(condition: ConditionView) -> str:
    """Return reason and message of a condition, shortened."""
    return shortened(": ".join(filter(None, (condition.reason, condition.message))))


def shortened(text: str) -> str:
    """Return a text on one line of at most `DETAIL_LENGTH` characters."""
    line = " ".join(text.split())
    return line if len(line) <= DETAIL_LENGTH else f"{line[: DETAIL_LENGTH - 1]}…"
