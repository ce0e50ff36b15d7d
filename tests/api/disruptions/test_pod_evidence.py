from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.disruptions import pod_evidence
from mldiagnostics_api.disruptions.causes import DisruptionCause as Cause
from mldiagnostics_api.formats import format_time
from support.cluster import builders as a
from support.cluster.recorded_runs import recorded

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def text(seconds: int) -> str:
    return format_time(START + timedelta(seconds=seconds))


def condition(kind: str, status: str, reason: str, message: str, seconds: int) -> a.Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": text(seconds)}


def terminated(seconds: int, code: int, reason: str = "Error", message: str = "") -> a.Object:
    ended = {"exitCode": code, "reason": reason, "startedAt": text(0), "finishedAt": text(seconds)}
    return {"terminated": ended | ({"message": message} if message else {})}


def pod(
    *,
    state: a.Object | None = None,
    last: a.Object | None = None,
    conditions: tuple[a.Object, ...] = (),
    deleted: int | None = None,
    **status: Any,
) -> a.Object:
    made = a.pod("w-3", node="n1")
    made["status"] |= {"conditions": [condition("PodScheduled", "True", "", "", 0), *conditions], **status}
    made["status"]["containerStatuses"] = [
        {"name": "train", "state": state or {"running": {"startedAt": text(0)}}, "lastState": last or {}}
    ]
    if deleted is not None:
        made["metadata"] |= {"deletionTimestamp": text(deleted + 30), "deletionGracePeriodSeconds": 30}
    return made


def target(reason: str, message: str, seconds: int = 100) -> tuple[a.Object, ...]:
    return (condition("DisruptionTarget", "True", reason, message, seconds),)


SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. "


@pytest.mark.parametrize(
    ("observed", "cause", "seconds", "detail"),
    [
        (
            pod(conditions=target("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher …")),
            Cause.PREEMPTION,
            100,
            "PreemptionByScheduler: default-scheduler: preempting to accommodate a higher …",
        ),
        (
            pod(conditions=target("TerminationByKubelet", SHUTDOWN), reason="Terminated", state=terminated(104, 143)),
            Cause.NODE_SHUTDOWN,
            100,
            f"TerminationByKubelet: {SHUTDOWN}",
        ),
        (
            pod(conditions=target("TerminationByKubelet", LOW), reason="Evicted", state=terminated(102, 137)),
            Cause.EVICTION,
            100,
            f"TerminationByKubelet: {LOW.strip()}",
        ),
        (
            pod(
                conditions=target("TerminationByKubelet", "Pod was preempted by Kubelet to accommodate a critical pod.")
            ),
            Cause.PREEMPTION,
            100,
            "TerminationByKubelet: Pod was preempted by Kubelet to accommodate a critical pod.",
        ),
        (
            pod(conditions=target("DeletionByPodGC", "PodGC: node no longer exists"), deleted=100),
            Cause.NODE_LOST,
            100,
            "DeletionByPodGC: PodGC: node no longer exists",
        ),
        (
            pod(conditions=target("EvictionByEvictionAPI", "Eviction API: evicting"), deleted=101, last=None),
            Cause.EVICTION,
            100,
            "EvictionByEvictionAPI: Eviction API: evicting",
        ),
        (
            pod(state=terminated(50, 137, "OOMKilled")),
            Cause.OUT_OF_MEMORY,
            50,
            "OOMKilled: container 'train' exceeded its memory limit",
        ),
        (
            pod(last=terminated(50, 137, "OOMKilled"), state={"waiting": {"reason": "CrashLoopBackOff"}}),
            Cause.OUT_OF_MEMORY,
            50,
            "OOMKilled: container 'train' exceeded its memory limit",
        ),
        (
            pod(state=terminated(50, 137)),  # killed without an OOM: by which process is not recorded
            Cause.EXIT_CODE,
            50,
            "container 'train' ended with exit code 137 (SIGKILL)",
        ),
        (
            pod(state=terminated(50, 1, message="ValueError:\n loss is NaN")),
            Cause.EXIT_CODE,
            50,
            "container 'train' ended with exit code 1: ValueError: loss is NaN",
        ),
        (
            pod(state=terminated(20, 1), conditions=target("EvictionByEvictionAPI", "Eviction API: evicting")),
            Cause.EXIT_CODE,
            20,
            "container 'train' ended with exit code 1",
        ),
        (
            pod(state=terminated(31, 143), deleted=30),
            Cause.DELETED,
            30,
            "was deleted; the API does not record by which user",
        ),
        (
            pod(state={"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "train:2"'}}),
            Cause.START_FAILURE,
            0,
            'ImagePullBackOff: Back-off pulling image "train:2"',
        ),
        (
            pod(reason="DeadlineExceeded", message="Pod was active on the node longer than the specified deadline"),
            Cause.DEADLINE,
            0,
            "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
        ),
    ],
)
def test_a_pod_shows_the_first_event_that_ended_it(observed: a.Object, cause: Cause, seconds: int, detail: str) -> None:
    [evidence] = pod_evidence(observed)
    assert evidence is not None
    assert (evidence.cause, evidence.detail) == (cause, detail)
    assert evidence.time == START + timedelta(seconds=seconds)
    assert (evidence.subject, evidence.node) == ("pod 'w-3'", "n1")


@pytest.mark.parametrize(
    "observed",
    [
        pod(),
        pod(state=terminated(50, 0, "Completed")),
        pod(state=terminated(50, 137, "ContainerStatusUnknown")),
        pod(state={"waiting": {"reason": "ContainerCreating"}}),
        pod(conditions=(condition("DisruptionTarget", "False", "EvictionByEvictionAPI", "", 100),)),
        pod(conditions=target("InventedReason", "by a newer component")),
        pod(reason="InventedReason"),
    ],
)
def test_a_pod_without_a_known_marker_shows_no_cause(observed: a.Object) -> None:
    assert pod_evidence(observed) == []


def test_an_unschedulable_pod_shows_the_schedulers_message() -> None:
    observed = pod()
    message = "0/12 nodes are available: 12 Insufficient google.com/tpu."
    observed["status"] = {"conditions": [condition("PodScheduled", "False", "Unschedulable", message, 3)]}
    [evidence] = pod_evidence(observed)
    assert evidence is not None
    assert (evidence.cause, evidence.detail) == (Cause.SCHEDULING, f"Unschedulable: {message}")
    observed["status"]["conditions"][0]["reason"] = "SchedulingGated"
    assert pod_evidence(observed) == []


STATES = st.one_of(
    st.just({}),
    st.builds(terminated, st.integers(0, 500), st.integers(0, 255), st.sampled_from(["Error", "OOMKilled", "New"])),
    st.sampled_from([{"running": {"startedAt": text(0)}}, {"running": None}, {"waiting": {"reason": None}}]),
)


@given(
    st.builds(
        pod,
        state=STATES,
        last=STATES,
        conditions=st.lists(
            st.builds(
                condition,
                st.sampled_from(["DisruptionTarget", "TerminationTarget", "PodScheduled", "Ready"]),
                st.sampled_from(["True", "False", "Unknown"]),
                st.sampled_from(["", "PreemptionByScheduler", "TerminationByKubelet", "Preempted", "Unschedulable"]),
                st.text(max_size=300),
                st.integers(0, 500),
            ),
            max_size=3,
        ).map(tuple),
        deleted=st.none() | st.integers(0, 500),
        reason=st.none() | st.sampled_from(["", "Evicted", "New"]),
        message=st.none() | st.text(max_size=300),
    )
)
def test_every_pod_is_read_and_a_deleted_one_has_a_cause(observed: a.Object) -> None:
    evidence = pod_evidence(observed)
    assert evidence or "deletionTimestamp" not in observed["metadata"]
    assert all(len(each.detail) <= 256 and "\n" not in each.detail for each in evidence)


def test_each_failure_of_a_container_that_is_restarted_in_place_counts_and_the_later_end_of_its_pod() -> None:
    observed = a.pod()
    observed["spec"]["restartPolicy"] = "OnFailure"
    observed["status"]["containerStatuses"] = [
        {
            "name": "train",
            "restartCount": 2,
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-04-24T03:04:05Z"}},
            "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-04-24T03:06:05Z"}},
        }
    ]
    observed["metadata"]["deletionTimestamp"] = "2026-04-24T03:10:05Z"
    assert [str(each.cause) for each in pod_evidence(observed)] == ["OutOfMemory", "ExitCode", "Deleted"]
    observed["spec"]["restartPolicy"] = "Never"
    assert [str(each.cause) for each in pod_evidence(observed)] == ["OutOfMemory"]


@pytest.mark.parametrize(
    ("title", "causes"),
    [
        ("exceeds", {Cause.OUT_OF_MEMORY}),
        ("evicted", {Cause.EVICTION}),
        ("preempted", {Cause.PREEMPTION, Cause.SCHEDULING}),  # its successor gets no node
        ("restarts", {Cause.EXIT_CODE, Cause.DELETED}),  # JobSet deletes the failed pod at once
        ("retries", {Cause.EXIT_CODE}),
    ],
)
def test_pods_of_a_real_kubelet_show_why_they_ended(title: str, causes: set[Cause]) -> None:
    evidence = [next(iter(pod_evidence(pod)), None) for pod in recorded(f"pods-{title}")]
    assert {item and item.cause for item in evidence} == causes


@pytest.mark.parametrize("grace_s", [10**11, 10**15, 2**63 - 1])
def test_any_grace_period_is_read(grace_s: int) -> None:
    deleted = pod(deleted=0)
    deleted["metadata"]["deletionGracePeriodSeconds"] = grace_s
    (evidence,) = pod_evidence(deleted)
    assert evidence.cause is Cause.DELETED


@pytest.mark.parametrize(("year", "causes"), [("0001", [Cause.EXIT_CODE]), ("9999", [Cause.PREEMPTION])])
def test_times_at_the_ends_of_the_calendar_are_compared(year: str, causes: list[Cause]) -> None:
    ended = terminated(0, 1)
    ended["terminated"]["finishedAt"] = f"{year}-12-31T23:59:59Z" if year == "9999" else f"{year}-01-01T00:00:00Z"
    observed = pod(state=ended, conditions=target("PreemptionByScheduler", ""))
    assert [each.cause for each in pod_evidence(observed)] == causes
