"""Runs of real workloads: an MLRun follows each from its queue to its end, with the reports of its hosts."""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import injection_workloads as make
import pytest
from cluster import addons
from cluster.provider import Provider
from demo import injecting
from demo.kubectl import Kubectl, eventually
from demo.on_cluster import start_training
from injection_scene import OPTED_IN, RUN_LABEL, Object, injected_run, placed, pods_of, temporary_namespace

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-runs-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"
DEADLINE_S = 240
ENDS = make.pod_spec(command=["true"])
WORKLOADS = {
    "JobSet/ends": make.jobset("ends", labels=OPTED_IN, pod=ENDS, hosts=1),
    "JobSet/restarts": make.jobset("restarts", labels=OPTED_IN, pod=make.pod_that_fails_once(), hosts=1),
    "LeaderWorkerSet/serves": make.leader_worker_set("serves", labels=OPTED_IN),
    "RayJob/computes": make.ray_job("computes", labels=OPTED_IN),
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


def until(kubectl: Kubectl, workload: str, holds: Callable[[Object], Any]) -> Object:
    """Wait until the status of a workload's run meets the condition; return the run."""

    def poll() -> Object | None:
        runs = kubectl.items("mlruns", HERE)
        return next(
            (run for run in runs if run.get("status", {}).get("workload") == workload and holds(run["status"])), None
        )

    return eventually(poll, f"the run of {workload}", deadline_s=DEADLINE_S)


def phase(expected: str) -> Callable[[Object], bool]:
    return lambda status: status.get("phase") == expected


@pytest.mark.parametrize("workload", ["JobSet/ends", "RayJob/computes"])
def test_a_workload_that_ends_completes_its_run(kubectl: Kubectl, workload: str) -> None:
    run = until(kubectl, workload, phase("Completed"))
    kubectl("wait", "mlrun", run["metadata"]["name"], HERE, "--for=condition=Complete", "--timeout=1s")
    assert run["status"]["completionTime"] >= run["status"]["startTime"]


def test_a_restart_is_another_attempt_of_the_same_run(kubectl: Kubectl) -> None:
    run = until(kubectl, "JobSet/restarts", lambda status: (status.get("attempt"), status["phase"]) == (1, "Active"))
    assert [attempt["attempt"] for attempt in run["status"]["attempts"]] == [0, 1]
    (pod,) = pods_of(kubectl, NAMESPACE, "restarts", count=1)
    assert injected_run(pod) == run["status"]["runId"]
    assert run["metadata"]["labels"][RUN_LABEL] == pod["metadata"]["labels"][RUN_LABEL]
    kubectl("delete", "jobset", "restarts", HERE, "--wait=false")
    run = until(kubectl, "JobSet/restarts", phase("Failed"))
    assert run["status"]["reason"] == "WorkloadDeleted"


def test_a_leader_worker_set_is_active_until_it_is_deleted(kubectl: Kubectl) -> None:
    until(kubectl, "LeaderWorkerSet/serves", phase("Active"))
    kubectl("delete", "leaderworkerset", "serves", HERE, "--wait=false")
    until(kubectl, "LeaderWorkerSet/serves", lambda status: status["phase"] in {"Completed", "Failed"})


def test_a_suspended_job_waits_and_then_starts(kubectl: Kubectl) -> None:
    manifest = placed(make.jobset("queued", labels=OPTED_IN, hosts=1), NAMESPACE)
    kubectl.apply(manifest | {"spec": manifest["spec"] | {"suspend": True}})
    until(kubectl, "JobSet/queued", lambda status: (status["phase"], status.get("reason")) == ("Pending", "Suspended"))
    kubectl("patch", "jobset", "queued", HERE, "--type=merge", '--patch={"spec": {"suspend": false}}')
    until(kubectl, "JobSet/queued", phase("Active"))
    kubectl("delete", "jobset", "queued", HERE, "--wait=false")


def test_the_hosts_of_a_training_job_report_to_its_run(kubectl: Kubectl, prepared: None) -> None:  # noqa: ARG001 - its image
    """Chart → webhook → pod → SDK → control plane → MLRun."""

    def follows() -> bool:
        containers = injecting.labelled_pod(kubectl, "default")["spec"]["containers"]
        return any(each["name"] == "MLDIAG_CONTROL_PLANE_URL" for each in containers[0].get("env", ()))

    eventually(follows, "a pod with the address of the control plane", deadline_s=DEADLINE_S)
    start_training(kubectl, NAMESPACE)

    def reports(status: Object) -> bool:
        return bool(status.get("hosts", {}).get("summary") == "2/2" and status.get("progress", {}).get("step"))

    run = until(kubectl, "JobSet/training", reports)
    truths = {condition["type"]: condition["status"] for condition in run["status"]["conditions"]}
    assert (truths["Started"], truths["Reporting"], truths["Complete"]) == ("True", "True", "False")
    assert "2/2" in kubectl("get", "mlrun", run["metadata"]["name"], HERE)
    kubectl("delete", "jobset", "training", HERE, "--wait=false")
    kubectl(
        "wait",
        "mlrun",
        run["metadata"]["name"],
        HERE,
        "--for=condition=Complete",
        f"--timeout={DEADLINE_S}s",
        timeout_s=DEADLINE_S + 10,
    )
