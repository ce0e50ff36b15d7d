from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.lifecycle import MAX_COUNT, QUEUE_GATE, QUEUE_LABEL, Lifecycle, lifecycle
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase
from mldiagnostics_api.workloads.kinds import WORKLOADS, workload_of

T = "2026-11-21T03:04:05Z"
TIME = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
PENDING, ACTIVE, COMPLETED, FAILED = MLRunPhase
KINDS = [workload for workload in WORKLOADS if not workload.groups]

POD = {"spec": {"containers": []}}
JOBSET = {
    "failurePolicy": {"maxRestarts": 3},
    "replicatedJobs": [
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 4, "completions": 4}}},
        {"name": "driver", "template": {"spec": {}}},
    ],
}
RAY = {
    "headGroupSpec": {},
    "workerGroupSpecs": [
        {"replicas": 2, "numOfHosts": 4},
        {"replicas": 1},
        {"replicas": 9, "suspend": True},
    ],
}


def condition(kind: str, reason: str = "", message: str = "", *, status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": T}


def state(kind: str, spec: dict[str, Any], status: dict[str, Any], **labels: str) -> Lifecycle:
    entry = workload_of(kind)
    assert entry is not None
    return lifecycle(entry, {"metadata": {"labels": labels}, "spec": spec, "status": status})


def test_every_kind_that_can_be_a_run_has_a_life() -> None:
    for kind in KINDS:
        empty = lifecycle(kind, {"metadata": {"name": "x"}})
        assert (empty.phase, empty.reason, empty.attempt) == (PENDING, "Starting", 0), kind.kind


@pytest.mark.parametrize(
    ("kind", "spec", "status", "phase", "reason", "attempt", "hosts"),
    [
        ("JobSet", JOBSET, {}, PENDING, "Starting", 0, 9),
        ("JobSet", JOBSET, {"replicatedJobsStatus": [{"active": 1}]}, PENDING, "Starting", 0, 9),
        ("JobSet", JOBSET, {"replicatedJobsStatus": [{"ready": 2}]}, ACTIVE, "Running", 0, 9),
        ("JobSet", JOBSET, {"restarts": 2, "replicatedJobsStatus": [{"ready": 1}]}, ACTIVE, "Restarted", 2, 9),
        ("JobSet", JOBSET, {"restarts": 1}, PENDING, "Restarted", 1, 9),
        ("JobSet", JOBSET, {"conditions": [condition("Completed", "AllJobsCompleted")]}, COMPLETED, "*", 0, 9),
        ("JobSet", JOBSET, {"conditions": [condition("Completed", status="False")]}, PENDING, "Starting", 0, 9),
        ("JobSet", JOBSET, {"restarts": 3, "conditions": [condition("Failed", "Max")]}, FAILED, "Max", 3, 9),
        ("JobSet", JOBSET | {"suspend": True}, {"conditions": [condition("Suspended")]}, PENDING, "Suspended", 0, 9),
        ("Job", {"parallelism": 8, "completions": 4}, {"startTime": T, "active": 4}, PENDING, "Starting", 0, 4),
        ("Job", {"parallelism": 8, "completions": 4}, {"ready": 1}, ACTIVE, "Running", 0, 4),
        ("Job", {"parallelism": 8}, {"ready": 1, "failed": 3}, ACTIVE, "PodsFailed", 0, 8),
        ("Job", {}, {"ready": 1, "failed": 2}, ACTIVE, "PodsFailed", 2, 1),
        ("Job", {}, {"failed": 3, "conditions": [condition("Failed", "BackoffLimitExceeded")]}, FAILED, "*", 2, 1),
        ("Job", {}, {"succeeded": 1, "conditions": [condition("SuccessCriteriaMet")]}, ACTIVE, "Running", 0, 1),
        ("Job", {}, {"conditions": [condition("Complete", "CompletionsReached")]}, COMPLETED, "*", 0, 1),
        (
            "LeaderWorkerSet",
            {"replicas": 3, "leaderWorkerTemplate": {"size": 4}},
            {"readyReplicas": 1},
            ACTIVE,
            "*",
            0,
            12,
        ),
        ("LeaderWorkerSet", {}, {"conditions": [condition("Available")]}, PENDING, "*", 0, 1),
        ("RayJob", {"rayClusterSpec": RAY}, {"jobDeploymentStatus": "Initializing"}, PENDING, "*", 0, 10),
        ("RayJob", {"rayClusterSpec": RAY}, {"jobDeploymentStatus": "Running"}, ACTIVE, "Running", 0, 10),
        ("RayJob", {}, {"jobStatus": "FAILED", "jobDeploymentStatus": "Running"}, ACTIVE, "Running", 0, None),
        (
            "RayJob",
            {},
            {"jobStatus": "FAILED", "jobDeploymentStatus": "Retrying", "failed": 1},
            PENDING,
            "*",
            1,
            None,
        ),
        ("RayJob", {}, {"jobDeploymentStatus": "Running", "failed": 1}, ACTIVE, "Retrying", 1, None),
        ("RayJob", {}, {"jobDeploymentStatus": "Suspended"}, PENDING, "Suspended", 0, None),
        ("RayJob", {}, {"jobStatus": "SUCCEEDED", "failed": 1}, COMPLETED, "Succeeded", 1, None),
        ("RayJob", {}, {"jobStatus": "STOPPED"}, FAILED, "Stopped", 0, None),
        (
            "RayJob",
            {},
            {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "failed": 3, "reason": "AppFailed"},
            FAILED,
            "AppFailed",
            2,
            None,
        ),
        ("RayCluster", RAY, {"state": "ready"}, ACTIVE, "Running", 0, 10),
        ("RayCluster", RAY, {"conditions": [condition("HeadPodReady")]}, ACTIVE, "Running", 0, 10),
        ("RayService", {"rayClusterConfig": RAY}, {"serviceStatus": "Running"}, ACTIVE, "Running", 0, 10),
        ("StatefulSet", {"replicas": 3}, {"readyReplicas": 2}, ACTIVE, "Running", 0, 3),
        ("Deployment", {}, {}, PENDING, "Starting", 0, 1),
        ("TrainJob", {"trainer": {"numNodes": 4}}, {"jobsStatus": [{"ready": 1}]}, ACTIVE, "*", 0, 4),
        ("TrainJob", {}, {"conditions": [condition("Complete", "Done")]}, COMPLETED, "Done", 0, None),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 3}}},
            {"conditions": [condition("Running")]},
            ACTIVE,
            "*",
            0,
            4,
        ),
        ("JAXJob", {"jaxReplicaSpecs": {"Worker": {}}}, {"conditions": [condition("Succeeded")]}, COMPLETED, "*", 0, 1),
        (
            "MPIJob",
            {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {"replicas": 3}}},
            {"conditions": [condition("Restarting"), condition("Running", status="False")]},
            ACTIVE,
            "Restarting",
            0,
            3,
        ),
        ("MPIJob", {"runPolicy": {"suspend": True}}, {}, PENDING, "Suspended", 0, 0),
        ("PathwaysJob", {}, {"condition": {"type": "PendingOrRunning"}, "restarts": 2}, ACTIVE, "*", 2, 1),
        ("PathwaysJob", {}, {"terminalState": "Complete", "condition": {"message": "m"}}, COMPLETED, "*", 0, 1),
        ("PathwaysJob", {}, {"condition": condition("Failed", "Oom")}, FAILED, "Oom", 0, 1),
        ("Pod", {}, {"phase": "Running"}, ACTIVE, "Running", 0, 1),
        ("Pod", {"schedulingGates": [{"name": QUEUE_GATE}]}, {"phase": "Pending"}, PENDING, "Suspended", 0, 1),
        ("Pod", {}, {"phase": "Succeeded"}, COMPLETED, "Succeeded", 0, 1),
        (
            "Pod",
            {},
            {
                "phase": "Failed",
                "containerStatuses": [
                    {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": T}}}
                ],
            },
            FAILED,
            "OOMKilled",
            0,
            1,
        ),
    ],
)
def test_the_life_of_a_workload(  # noqa: PLR0917 - a parameter for each column
    kind: str,
    spec: dict[str, Any],
    status: dict[str, Any],
    phase: MLRunPhase,
    reason: str,
    attempt: int,
    hosts: int | None,
) -> None:
    known = state(kind, spec, status)
    assert (known.phase, known.attempt, known.hosts) == (phase, attempt, hosts)
    assert known.reason == (known.reason if reason == "*" else reason)
    assert known.reason
    assert known.message or phase in FINISHED_RUN_PHASES


def test_a_retry_of_a_ray_job_is_explained_by_the_attempt_before() -> None:
    """KubeRay clears the message when the next cluster starts."""

    def message(deployment: str, text: str) -> str:
        status = {"jobDeploymentStatus": deployment, "failed": 1, "message": text}
        return state("RayJob", {"backoffLimit": 2}, status).message

    again = "KubeRay retries with a new cluster, retry 1 of at most 2"
    assert message("Retrying", "exit code 1") == f"{again}: exit code 1"
    assert message("Running", "Job is currently running.") == again


def test_the_times_of_a_finished_job_are_its_own() -> None:
    done = state("Job", {}, {"startTime": T, "completionTime": T, "conditions": [condition("Complete")]})
    assert (done.started, done.ended) == (TIME, TIME)
    assert state("JobSet", {}, {"conditions": [condition("Failed")]}).ended == TIME
    assert state("Pod", {}, {"phase": "Succeeded", "startTime": "soon"}).started is None


def test_a_queue_is_named_and_a_gated_kind_does_not_know_whether_it_is_admitted() -> None:
    queued = state("Job", {"suspend": True}, {}, **{QUEUE_LABEL: "tpu"})
    assert (queued.admitted, queued.reason, queued.message) == (False, "Queued", "the Job waits in queue tpu")
    assert state("Job", {}, {}, **{QUEUE_LABEL: "tpu"}).admitted is True
    assert state("LeaderWorkerSet", {}, {}, **{QUEUE_LABEL: "tpu"}).admitted is None
    assert state("LeaderWorkerSet", {}, {"readyReplicas": 1}, **{QUEUE_LABEL: "tpu"}).admitted is True
    assert [kind.kind for kind in KINDS if lifecycle(kind, {}).endless] == [
        "LeaderWorkerSet",
        "RayCluster",
        "RayService",
        "StatefulSet",
        "Deployment",
        "ReplicaSet",
    ]


NAMES = (
    "replicatedJobs template spec replicas parallelism completions conditions type status reason message restarts "
    "lastTransitionTime startTime completionTime failed ready suspend jobStatus jobDeploymentStatus Failed Complete "
    "Completed Succeeded True terminalState condition containerStatuses state terminated exitCode finishedAt phase "
    "workerGroupSpecs rayClusterSpec numOfHosts runPolicy mpiReplicaSpecs trainer numNodes failurePolicy"
)
WORDS = st.sampled_from(NAMES.split())
NUMBERS = st.booleans() | st.integers(-(2**40), 2**40) | st.floats()
SCALARS = st.none() | NUMBERS | WORDS | st.text(max_size=3) | st.just(T)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5))


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON))
def test_no_object_breaks_a_reader_or_a_bound(kind: Any, workload: dict[str, Any]) -> None:
    known = lifecycle(kind, workload)
    assert 0 <= known.attempt <= MAX_COUNT
    assert known.hosts is None or 0 <= known.hosts <= MAX_COUNT
    assert 0 < len(known.reason) <= 128
    assert len(known.message) <= 1024
    assert known.phase is PENDING or known.admitted is not False
