"""Runs of real workloads: an MLRun follows each from its queue to its end, with the reports of its hosts."""

import json
import secrets
from collections.abc import Iterator

import injection_workloads as make
import pytest
from cluster import addons
from cluster.paths import E2E
from cluster.provider import Provider
from demo import installation
from demo.kubectl import Kubectl, eventually
from injection_scene import OPTED_IN, RUN_LABEL, Object, injected_run, parked, placed, pods_of, temporary_namespace
from run_scene import DEADLINE_S, RAY_DEADLINE_S, Runs, in_attempt, phase, truths, waits

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-runs-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"
NODE_LABEL = "kubernetes.io/hostname"
ENDS = make.pod_spec(command=["true"])
ENDS_ON_REQUEST = make.pod_spec(command=["sh", "-c", make.ENDS_ON_REQUEST])
PEER_URL = f"http://{installation.OPERATOR}-api.{installation.NAMESPACE}.svc:8080"
REPORT_AS_PEER = [make.PYTHON, "-c", (E2E / "peers/self_hosted.py").read_text()]


def reporting_as_peer(name: str, ending: str) -> Object:
    """Return a Job of one pod that reports with Google's SDK, unchanged."""
    pod = make.pod_spec(command=[*REPORT_AS_PEER, ending])
    job = make.job(name, labels=OPTED_IN)
    job["spec"] = {"backoffLimit": 0, "template": {"spec": pod}}
    return make.annotated(job, {"diagon.gke.io/peer-control-plane": PEER_URL})


WORKLOADS = {
    "JobSet/ends": make.jobset("ends", labels=OPTED_IN, pod=ENDS, hosts=1),
    "JobSet/restarts": make.jobset("restarts", labels=OPTED_IN, pod=ENDS_ON_REQUEST, hosts=1),
    "JobSet/fails": make.jobset("fails", labels=OPTED_IN, pod=make.pod_spec(command=["false"]), hosts=1),
    "LeaderWorkerSet/serves": make.leader_worker_set("serves", labels=OPTED_IN),
    "RayJob/ends": make.ray_job_on_head("ends", "true", labels=OPTED_IN),
    # Its pods find no node: each attempt ends at its deadline, and costs this machine no Ray.
    "RayJob/fails": parked(
        make.ray_job_on_head("fails", "true", labels=OPTED_IN, backoffLimit=1, preRunningDeadlineSeconds=1)
    ),
    "Job/returns": reporting_as_peer("returns", "return"),
    "Job/raises": reporting_as_peer("raises", "raise"),
}


@pytest.fixture(scope="module", autouse=True)
def _workloads(running_cluster: Provider, kubectl: Kubectl, operator: None, webhook: None) -> Iterator[None]:  # noqa: ARG001 - must exist
    """Create all workloads at once: some work while the tests check others."""
    make.load_peers_image(running_cluster)
    for name in ("jobset", "lws", "kuberay"):
        addons.install(name, running_cluster)
    with temporary_namespace(kubectl, NAMESPACE, {}):
        for manifest in WORKLOADS.values():
            kubectl.apply(placed(manifest, NAMESPACE))
        yield


@pytest.fixture(scope="module")
def runs(kubectl: Kubectl) -> Runs:
    return Runs(kubectl, NAMESPACE)


@pytest.mark.timeout(840)
@pytest.mark.parametrize("workload", ["JobSet/ends", "RayJob/ends"])
def test_a_workload_that_ends_completes_its_run(runs: Runs, workload: str) -> None:
    run = runs.until(workload, phase("Completed"))
    runs.wait(run, "Complete")
    assert run["status"]["completionTime"] >= run["status"]["startTime"]


@pytest.mark.timeout(840)
@pytest.mark.parametrize(
    ("workload", "reason"), [("JobSet/fails", "ReachedMaxRestarts"), ("RayJob/fails", "PreRunningDeadlineExceeded")]
)
def test_a_workload_that_fails_again_fails_its_run_in_the_last_attempt(runs: Runs, workload: str, reason: str) -> None:
    run = runs.until(workload, in_attempt(1, "Failed"))
    runs.wait(run, "Complete")
    assert run["status"]["reason"] == reason
    assert runs.story(run, last="Failed")


def test_a_restart_is_another_attempt_of_the_same_run(runs: Runs, kubectl: Kubectl) -> None:
    runs.until("JobSet/restarts", in_attempt(0, "Active"))
    (first,) = pods_of(kubectl, NAMESPACE, "restarts", count=1)
    name = first["metadata"]["name"]
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", HERE, f"--timeout={DEADLINE_S}s", timeout_s=DEADLINE_S + 10)
    kubectl("exec", name, HERE, "--", *make.end_with(1))
    run = runs.until("JobSet/restarts", in_attempt(1, "Active"))
    assert [attempt["attempt"] for attempt in run["status"]["attempts"]] == [0, 1]
    (pod,) = pods_of(kubectl, NAMESPACE, "restarts", count=1)
    assert injected_run(pod) == run["status"]["runId"]
    assert run["metadata"]["labels"][RUN_LABEL] == pod["metadata"]["labels"][RUN_LABEL]
    runs.delete("JobSet/restarts")
    run = runs.until("JobSet/restarts", phase("Failed"))
    assert run["status"]["reason"] == "WorkloadDeleted"


@pytest.mark.parametrize(("workload", "end"), [("Job/returns", "Completed"), ("Job/raises", "Failed")])
def test_googles_sdk_reports_to_the_run_of_its_workload(runs: Runs, workload: str, end: str) -> None:
    run = runs.until(workload, lambda status: status["phase"] == end and status.get("aliases"))
    assert truths(run["status"])["Complete"] == "True"
    assert [other["metadata"]["name"] for other in runs.all() if "workloadRef" not in other["spec"]] == []


def test_a_leader_worker_set_whose_group_restarts_is_active_until_it_is_deleted(runs: Runs, kubectl: Kubectl) -> None:
    run = runs.until("LeaderWorkerSet/serves", phase("Active"))
    group = {pod["metadata"]["uid"] for pod in pods_of(kubectl, NAMESPACE, "serves", count=2)}
    kubectl("delete", "pod", "serves-0", HERE, "--wait=false")

    def replaced() -> list[Object] | None:
        pods = pods_of(kubectl, NAMESPACE, "serves", count=2)
        return None if group & {pod["metadata"]["uid"] for pod in pods} else pods

    for pod in eventually(replaced, "another group of the LeaderWorkerSet", deadline_s=DEADLINE_S):
        assert injected_run(pod) == run["status"]["runId"]
    runs.until("LeaderWorkerSet/serves", in_attempt(1, "Active"))
    runs.delete("LeaderWorkerSet/serves")
    run = runs.until("LeaderWorkerSet/serves", phase("Completed"))
    assert run["status"]["reason"] == "WorkloadDeleted"


def test_a_suspended_job_waits_and_is_resumed_in_another_attempt(runs: Runs, kubectl: Kubectl) -> None:
    workload = "JobSet/queued"
    manifest = placed(make.jobset("queued", labels=OPTED_IN, hosts=1), NAMESPACE)
    kubectl.apply(manifest | {"spec": manifest["spec"] | {"suspend": True}})
    runs.until(workload, waits)
    runs.change(workload, suspend=False)
    runs.until(workload, phase("Active"))
    runs.change(workload, suspend=True)
    runs.until(workload, waits)
    runs.change(workload, suspend=False)
    status = runs.until(workload, phase("Active"))["status"]
    assert truths(status)["Admitted"] == "True"
    interrupted, resumed = status["attempts"]
    assert (interrupted["attempt"], interrupted["cause"], resumed["attempt"]) == (0, "Suspended", 1)
    runs.delete(workload)


@pytest.mark.timeout(840)  # three starts of Ray; a stage that is silent for 900 s is ended
def test_a_ray_job_is_one_run_over_a_retry_and_a_suspension_until_it_is_deleted(runs: Runs, kubectl: Kubectl) -> None:
    """Each attempt, and each start after a suspension, has a Ray cluster of its own."""
    workload = "RayJob/retried"

    def clusters() -> list[str]:
        """Return the names of the Ray clusters that exist."""
        listed = kubectl.items("rayclusters", HERE, "--selector=ray.io/originated-from-cr-name=retried")
        return [cluster["metadata"]["name"] for cluster in listed]

    def computes() -> bool:
        return bool(kubectl.get(workload, HERE)["status"].get("jobStatus") == "RUNNING")

    manifest = make.ray_job_on_head(
        "retried", "false", labels=OPTED_IN, backoffLimit=1, suspend=True, shutdownAfterJobFinishes=True
    )
    kubectl.apply(placed(manifest, NAMESPACE))
    runs.until(workload, waits)
    assert clusters() == []
    runs.change(workload, suspend=False)
    runs.until(workload, lambda status: status.get("attempt") == 1)
    runs.change(workload, entrypoint="sleep infinity")  # read when the next cluster is ready
    eventually(computes, "the second attempt of the Ray job", deadline_s=RAY_DEADLINE_S)
    runs.until(workload, in_attempt(1, "Active"))
    (second,) = clusters()
    runs.change(workload, suspend=True)
    runs.until(workload, waits)
    eventually(lambda: clusters() == [], "removal of the Ray cluster", deadline_s=DEADLINE_S)
    runs.change(workload, suspend=False)
    status = runs.until(workload, phase("Active"))["status"]
    failed, interrupted, resumed = status["attempts"]
    assert (failed["attempt"], interrupted["attempt"], resumed["attempt"]) == (0, 1, 2)
    assert interrupted["cause"] == "Suspended"
    eventually(lambda: clusters() not in ([], [second]), "a third Ray cluster", deadline_s=DEADLINE_S)
    runs.delete(workload)
    run = runs.until(workload, phase("Failed"))
    assert (run["status"]["reason"], run["status"]["attempt"]) == ("WorkloadDeleted", 2)
    story = runs.story(run, last="Failed")
    reasons = [event["reason"] for event in story if event["reason"] != "Disrupted"]
    assert reasons == ["Admitted", "Started", "Restarted", "Suspended", "Admitted", "Failed"]
    (restarted,) = (event["message"] for event in story if event["reason"] == "Restarted")
    assert "retry 1 of at most 1: Job entrypoint command failed with exit code 1" in restarted


def test_a_node_that_is_taken_away_is_the_cause_of_the_restart(runs: Runs, kubectl: Kubectl) -> None:
    """No kubelet runs on the node: the test reports its pod's state in its place."""
    node = f"taken-{NAMESPACE}"
    pod = make.pod_spec() | {"nodeSelector": {NODE_LABEL: node}, "tolerations": [{"operator": "Exists"}]}
    kubectl.apply(ready_node(node))
    try:
        kubectl.apply(placed(make.jobset("loses", labels=OPTED_IN, pod=pod, hosts=1), NAMESPACE))
        (started,) = pods_of(kubectl, NAMESPACE, "loses", count=1)
        name = started["metadata"]["name"]
        kubectl(
            "wait", "pod", name, HERE, "--for=condition=PodScheduled", f"--timeout={DEADLINE_S}s",
            timeout_s=DEADLINE_S + 10,
        )  # fmt: skip
        started_by_us = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        patch = f"--patch={json.dumps({'status': started_by_us})}"
        kubectl("patch", "pod", name, HERE, "--subresource=status", patch)
        runs.until("JobSet/loses", phase("Active"))
    finally:
        kubectl("delete", "node", node)
    # The garbage collector of pods waits 40 s after the node is gone.
    run = runs.until("JobSet/loses", lambda status: status["attempts"][0].get("cause") == "NodeLost")
    assert run["status"]["attempts"][0]["attempt"] == 0
    runs.delete("JobSet/loses")


def ready_node(name: str) -> Object:
    """Return a node on which pods may be scheduled."""
    room = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": {NODE_LABEL: name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
