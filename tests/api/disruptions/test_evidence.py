from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mldiagnostics_api.disruptions import CreationFailure, event_evidence, node_evidence, workload_evidence
from mldiagnostics_api.disruptions.causes import DisruptionCause as Cause
from mldiagnostics_api.formats import format_time
from support.cluster import builders as a
from support.cluster.recorded_runs import recorded

SEEN = datetime(2026, 4, 24, 4, 0, tzinfo=UTC)
TIME = SEEN - timedelta(seconds=30)


def node(**parts: Any) -> a.Object:
    return {"kind": "Node", "metadata": {"name": "n1", "labels": parts.pop("labels", {})}, **parts}


def condition(kind: str, status: str, reason: str = "", message: str = "") -> a.Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(TIME),
    }


def ready(status: str, reason: str, message: str) -> a.Object:
    return node(
        status={"conditions": [condition("MemoryPressure", "Unknown"), condition("Ready", status, reason, message)]}
    )


@pytest.mark.parametrize(
    ("lost_node", "cause", "time", "detail"),
    [
        (None, Cause.NODE_LOST, SEEN, "the node no longer exists"),
        (
            ready("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
            Cause.NODE_LOST,
            TIME,
            "NodeStatusUnknown: Kubelet stopped posting node status.",
        ),
        (
            ready("False", "KubeletNotReady", "node is shutting down"),
            Cause.NODE_SHUTDOWN,
            TIME,
            "KubeletNotReady: node is shutting down",
        ),
        (
            node(labels={"cloud.google.com/active-node-maintenance": "ONGOING"}),
            Cause.MAINTENANCE,
            SEEN,
            "label cloud.google.com/active-node-maintenance=ONGOING",
        ),
        (
            node(spec={"taints": [{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}]}),
            Cause.NODE_SHUTDOWN,
            SEEN,
            "taint cloud.google.com/impending-node-termination",
        ),
        (
            node(spec={"taints": [{"key": "node.kubernetes.io/unreachable", "timeAdded": format_time(TIME)}]}),
            Cause.NODE_LOST,
            TIME,
            "taint node.kubernetes.io/unreachable",
        ),
        (
            node(
                status={"conditions": [condition("VMEventScheduled", "True", "VMEventScheduled", "Reboot Scheduled")]}
            ),
            Cause.MAINTENANCE,
            TIME,
            "VMEventScheduled: VMEventScheduled: Reboot Scheduled",
        ),
    ],
)
def test_a_node_shows_its_loss_its_shutdown_or_its_maintenance(
    lost_node: a.Object | None, cause: Cause, time: datetime, detail: str
) -> None:
    evidence = node_evidence("n1", lost_node, seen=SEEN)
    assert evidence is not None
    assert (evidence.cause, evidence.time, evidence.detail) == (cause, time, detail)
    assert (evidence.subject, evidence.node) == ("node 'n1'", "n1")


@pytest.mark.parametrize(
    "healthy",
    [
        node(),
        ready("True", "KubeletReady", "kubelet is posting ready status"),
        node(spec={"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable"}]}),
        node(labels={"cloud.google.com/active-node-maintenance": "PENDING"}),
    ],
)
def test_a_node_that_works_or_is_only_cordoned_shows_nothing(healthy: a.Object) -> None:
    assert node_evidence("n1", healthy, seen=SEEN) is None


def event(kind: str, reason: str, message: str, **times: Any) -> a.Object:
    return {"involvedObject": {"kind": kind, "name": "x"}, "reason": reason, "message": message, **times}


LAST = {"lastTimestamp": format_time(TIME)}


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        (event("Pod", "Preempted", "Preempted by pod 4c0ad0b2 on node n1", **LAST), Cause.PREEMPTION),
        (event("Pod", "TaintManagerEviction", "Marking for deletion Pod ml/x", **LAST), Cause.EVICTION),
        (event("Pod", "NodeNotReady", "Node is not ready", **LAST), Cause.NODE_LOST),
        (event("Node", "Rebooted", "Node x has been rebooted, boot id: 77", **LAST), Cause.NODE_LOST),
        (event("Node", "PreemptScheduled", "Preempt Scheduled: soon", **LAST), Cause.PREEMPTION),
        (event("Job", "FailedCreate", 'pods "x" is forbidden: exceeded quota: q, used: 8', **LAST), Cause.QUOTA),
        (event("Pod", "TaintManagerEviction", "Cancelling deletion of Pod ml/x", **LAST), None),
        (event("Job", "FailedCreate", 'pods "x" is forbidden: violates PodSecurity', **LAST), None),
        (event("Pod", "Killing", "Stopping container train", **LAST), None),
        (event("Pod", "NodeNotReady", "Node is not ready"), None),
    ],
)
def test_an_event_shows_a_cause_if_its_reason_does(record: a.Object, cause: Cause | None) -> None:
    evidence = event_evidence(record)
    assert (evidence and evidence.cause) == cause
    newer = {
        "regarding": record["involvedObject"],
        "note": record["message"],
        "reason": record["reason"],
        "eventTime": record.get("lastTimestamp"),
    }
    assert event_evidence(newer) == evidence  # events.k8s.io/v1


@pytest.mark.parametrize(
    ("kind", "reason", "cause"),
    [
        ("Evicted", "Preempted", Cause.PREEMPTION),
        ("Evicted", "ClusterQueueStopped", Cause.QUOTA),
        ("Evicted", "PodsReadyTimeout", Cause.SCHEDULING),
        ("Evicted", "Deactivated", Cause.SUSPENDED),
        ("Failed", "DeadlineExceeded", Cause.DEADLINE),
        ("Failed", "BackoffLimitExceeded", None),
    ],
)
def test_a_workload_shows_why_its_queue_or_its_controller_ended_it(kind: str, reason: str, cause: Cause | None) -> None:
    workload = a.thing("w", kind="Workload", api_version="kueue.x-k8s.io/v1beta1")
    workload["status"] = {"conditions": [condition(kind, "True", reason, "why")]}
    evidence = workload_evidence(workload, seen=SEEN)
    assert (evidence and (evidence.cause, evidence.time)) == (cause and (cause, TIME))
    workload["status"]["conditions"][0]["status"] = "False"
    assert workload_evidence(workload, seen=SEEN) is None


def test_a_workload_shows_its_suspension_and_its_deletion() -> None:
    workload = a.job(pods=1).workload
    assert workload is not None
    assert workload_evidence(workload, seen=SEEN) is None
    workload.setdefault("spec", {})["suspend"] = True
    suspended = workload_evidence(workload, seen=SEEN)
    workload["metadata"]["deletionTimestamp"] = format_time(TIME)
    deleted = workload_evidence(workload, seen=SEEN)
    assert suspended is not None
    assert deleted is not None
    assert (suspended.cause, suspended.time) == (Cause.SUSPENDED, SEEN)
    assert (deleted.cause, deleted.time) == (Cause.DELETED, TIME)


def test_the_refusals_of_a_quota_are_read_from_real_events() -> None:
    failures = [CreationFailure.of(event) for event in recorded("events-refused")]
    assert {failure and (failure.reference.kind, failure.reference.name) for failure in failures} == {
        ("Job", "refused-workers-0")
    }
    assert {failure and failure.evidence.cause for failure in failures} == {Cause.QUOTA}
