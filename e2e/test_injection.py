"""Pods of opted-in workloads from real controllers: each gets the run of its workload."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import injection_workloads as make
import pytest
from cluster import addons
from cluster.provider import Provider
from demo import capturing
from demo.kubectl import Kubectl, eventually
from injection_scene import (
    OPT_IN,
    OPTED_IN,
    RUN_ID,
    Object,
    cluster_name,
    explanation,
    injected_run,
    parked,
    placed,
    pods_of,
    run_id,
    temporary_namespace,
    variables,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhook")]

SESSION = secrets.token_hex(2)
BY_WORKLOAD = f"e2e-injection-{SESSION}"
BY_NAMESPACE = f"e2e-injection-labelled-{SESSION}"
LABELS = OPTED_IN | {"team": "infra"}
GITOPS = ("--server-side", "--field-manager=gitops", "--force-conflicts")
OF_WORKLOADS = {
    "jobset": make.jobset("jobset", labels=LABELS, pod=make.pod_on_gke()),
    "rayjob": make.ray_job("rayjob", labels=LABELS, variable="MLDIAG_RUN_ID"),
    "leaderworkerset": parked(make.leader_worker_set("leaderworkerset", labels=LABELS)),
    "job": parked(make.job("job", labels=LABELS)),
    "statefulset": parked(make.stateful_set("statefulset", labels=LABELS)),
    "deployment": parked(make.deployment("deployment", labels=LABELS)),
    "pod": make.bare_pod("pod", labels=LABELS),
    "cronjob": parked(make.cron_job("cronjob", labels=LABELS)),
    "restarted": make.jobset("restarted", labels=LABELS, pod=make.pod_that_fails_once(), hosts=1),
}
PODS = {"jobset": 2, "rayjob": 3, "leaderworkerset": 2, "job": 2, "statefulset": 1, "deployment": 1, "pod": 1}
OF_NAMESPACE = [
    parked(make.jobset("jobset")),
    parked(make.ray_job("rayjob")),
    parked(make.leader_worker_set("leaderworkerset")),
    parked(make.job("job")),
    parked(make.stateful_set("statefulset")),
    parked(make.deployment("deployment")),
    parked(make.bare_pod("pod")),
    parked(make.jobset("opted-out", labels={OPT_IN: "false"})),
    parked(make.annotated(make.jobset("annotated"), {"diagon.gke.io/inject": "false"})),
]


@pytest.fixture(scope="module")
def cluster(kubectl: Kubectl) -> str:
    return cluster_name(kubectl)


@pytest.fixture(scope="module", autouse=True)
def _workloads(running_cluster: Provider, kubectl: Kubectl, webhook: None) -> Iterator[None]:  # noqa: ARG001 - must exist
    """Create all workloads at once: some start while the tests check others."""
    make.load_peers_image(running_cluster)
    for name in ("jobset", "lws", "kuberay"):
        addons.install(name, running_cluster)
    with temporary_namespace(kubectl, BY_WORKLOAD, {}), temporary_namespace(kubectl, BY_NAMESPACE, OPTED_IN):
        for manifest in OF_WORKLOADS.values():
            kubectl.apply(placed(manifest, BY_WORKLOAD))
        for manifest in OF_NAMESPACE:
            kubectl.apply(placed(manifest, BY_NAMESPACE))
        yield


@pytest.mark.parametrize("name", PODS)
def test_a_label_on_a_workload_injects_all_its_pods(kubectl: Kubectl, cluster: str, name: str) -> None:
    workload = kubectl.get(OF_WORKLOADS[name]["kind"], name, f"--namespace={BY_WORKLOAD}")
    for pod in pods_of(kubectl, BY_WORKLOAD, name, count=PODS[name]):
        assert injected_run(pod) == (
            run_id(workload, cluster) if name != "pod" else pod["metadata"]["annotations"][RUN_ID]
        )


@pytest.mark.parametrize(("name", "pods"), [("jobset", 2), ("rayjob", 2), ("leaderworkerset", 2), ("job", 2)])
def test_a_label_on_a_namespace_injects_the_pods_of_batch_workloads(
    kubectl: Kubectl, cluster: str, name: str, pods: int
) -> None:
    workload = kubectl.get(OF_WORKLOADS[name]["kind"], name, f"--namespace={BY_NAMESPACE}")
    for pod in pods_of(kubectl, BY_NAMESPACE, name, count=pods):
        assert injected_run(pod) == run_id(workload, cluster)


@pytest.mark.parametrize("name", ["statefulset", "deployment"])
def test_serving_workloads_need_their_own_label_and_their_pods_explain_it(kubectl: Kubectl, name: str) -> None:
    (pod,) = pods_of(kubectl, BY_NAMESPACE, name, count=1)
    assert injected_run(pod) is None
    assert f"{OF_WORKLOADS[name]['kind']} needs its own label" in explanation(pod)


@pytest.mark.parametrize(("name", "pods"), [("opted-out", 2), ("annotated", 2), ("pod", 1)])
def test_pods_that_opted_out_or_have_no_workload_are_not_changed(kubectl: Kubectl, name: str, pods: int) -> None:
    for pod in pods_of(kubectl, BY_NAMESPACE, name, count=pods):
        assert injected_run(pod) is None
        assert explanation(pod) == ""


def test_a_jobset_in_the_default_namespace_needs_only_the_label_on_itself(kubectl: Kubectl, cluster: str) -> None:
    name = f"readme-{SESSION}"
    kubectl.apply(placed(make.jobset(name, labels=OPTED_IN), "default"))
    try:
        workload = kubectl.get("jobset", name, "--namespace=default")
        for pod in pods_of(kubectl, "default", name, count=2):
            assert injected_run(pod) == run_id(workload, cluster)
    finally:
        kubectl("delete", "jobset", name, "--namespace=default", "--wait=false")


def test_the_peers_sdk_and_the_operator_compute_the_injected_run(
    kubectl: Kubectl,
    cluster: str,
    operator: None,  # noqa: ARG001 - must exist
) -> None:
    pods = pods_of(kubectl, BY_WORKLOAD, "jobset", count=2)
    workload = kubectl.get("jobset", "jobset", f"--namespace={BY_WORKLOAD}")
    for pod in pods:
        output = json.loads(_run(kubectl, pod, make.PYTHON, make.RUN_ID))
        assert output["run"] == injected_run(pod) == run_id(workload, cluster)
        assert output["workload"]["labels"] == LABELS
    reference = {"apiVersion": workload["apiVersion"], "kind": "JobSet", "name": "jobset"}
    trigger = {"target": {"workloadRef": reference}, "dryRun": True}
    capture = {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": "dry", "namespace": BY_WORKLOAD},
        "spec": {"triggerCapture": trigger},
    }
    kubectl.apply(capture)
    done = capturing.until_finished(kubectl, BY_WORKLOAD, "dry", deadline_s=60)
    assert done["status"]["captureResult"]["outputLocation"] == f"volume:///{run_id(workload, cluster)}"


def test_the_hosts_of_a_jobset_get_rank_and_attempt(kubectl: Kubectl) -> None:
    environments = [_environment(kubectl, pod) for pod in pods_of(kubectl, BY_WORKLOAD, "jobset", count=2)]
    assert sorted(each["MLDIAG_RANK"] for each in environments) == ["0", "1"]
    assert {each["MLDIAG_ATTEMPT"] for each in environments} == {"0"}
    assert {each["OWN"] for each in environments} == {"kept"}


def test_sidecars_get_the_run_and_init_containers_do_not(kubectl: Kubectl) -> None:
    for pod in pods_of(kubectl, BY_WORKLOAD, "jobset", count=2):
        setup, sidecar = pod["spec"]["initContainers"]
        assert "MLDIAG_RUN_ID" not in variables(setup)
        assert variables(sidecar)["MLDIAG_RUN_ID"] == injected_run(pod)


def test_a_restarted_jobset_is_the_same_run_in_another_attempt(kubectl: Kubectl, cluster: str) -> None:
    def again() -> Object | None:
        listed = kubectl.items("pods", f"--namespace={BY_WORKLOAD}", "--selector=jobset.sigs.k8s.io/restart-attempt=1")
        return next((pod for pod in listed if pod["metadata"]["name"].startswith("restarted-")), None)

    pod = eventually(again, "restart of the JobSet", deadline_s=120)
    assert injected_run(pod) == run_id(kubectl.get("jobset", "restarted", f"--namespace={BY_WORKLOAD}"), cluster)
    assert _environment(kubectl, pod)["MLDIAG_ATTEMPT"] == "1"


def test_a_pod_that_is_its_own_run_gets_its_uid(kubectl: Kubectl) -> None:
    (pod,) = pods_of(kubectl, BY_WORKLOAD, "pod", count=1)
    environment = _environment(kubectl, pod)
    assert json.loads(environment["MLDIAG_WORKLOAD"])["uid"] == pod["metadata"]["uid"]
    assert environment["MLDIAG_POD_NAME"] == "pod"
    assert environment["MLDIAG_NODE_NAME"] == pod["spec"]["nodeName"]


def test_tasks_of_a_ray_job_see_its_run(kubectl: Kubectl, cluster: str) -> None:
    def succeeded() -> Object | None:
        item: Object = kubectl.get("rayjob", "rayjob", f"--namespace={BY_WORKLOAD}")
        status = item["status"].get("jobStatus")
        assert status != "FAILED", item["status"]
        return item if status == "SUCCEEDED" else None

    job = eventually(succeeded, "success of the Ray job", deadline_s=180, pause_s=1)
    line = f"in a task: {run_id(job, cluster)}"

    def printed() -> bool:
        """Return whether the submitter shows the task's line: Ray sends it there after the job has its success."""
        return line in kubectl("logs", f"--namespace={BY_WORKLOAD}", "--selector=job-name=rayjob", "--tail=-1")

    eventually(printed, f"the line {line!r} in the submitter's log", deadline_s=60, pause_s=1)


@pytest.mark.parametrize("name", ["jobset", "rayjob", "leaderworkerset"])
def test_applying_a_workload_again_shows_no_difference_and_restarts_nothing(kubectl: Kubectl, name: str) -> None:
    manifest = json.dumps(placed(OF_WORKLOADS[name], BY_WORKLOAD))
    before = _incarnation(kubectl, name)

    def on_manifest(verb: str, *options: str) -> str:
        return kubectl(verb, *options, "--filename=-", stdin=manifest)

    # The output may be "configured": lists of custom resources are sent whole, without additions of controllers.
    on_manifest("apply")
    on_manifest("diff")  # fails if there is a difference
    on_manifest("apply", *GITOPS)
    on_manifest("diff", *GITOPS)
    on_manifest("apply", *GITOPS)
    assert _incarnation(kubectl, name) == before


@pytest.mark.parametrize("options", [(), GITOPS], ids=["by the client", "by the server"])
def test_applying_an_injected_pod_again_shows_no_difference(kubectl: Kubectl, options: tuple[str, ...]) -> None:
    name = "again-by-the-server" if options else "again-by-the-client"
    manifest = json.dumps(placed(parked(make.bare_pod(name, labels=LABELS)), BY_WORKLOAD))

    def apply_again() -> str | None:
        kubectl("apply", *options, "--filename=-", stdin=manifest)
        return injected_run(kubectl.get("pod", name, f"--namespace={BY_WORKLOAD}"))

    run = apply_again()
    assert run
    kubectl("diff", *options, "--filename=-", stdin=manifest)
    assert apply_again() == run


def test_each_job_of_a_cronjob_is_a_separate_run(kubectl: Kubectl, cluster: str) -> None:
    def first() -> Object | None:
        owned = [job for job in kubectl.items("jobs", where) if job["metadata"]["name"].startswith("cronjob-")]
        return owned[0] if owned else None

    where = f"--namespace={BY_WORKLOAD}"
    job = eventually(first, "a Job of the CronJob", deadline_s=90)
    (pod,) = pods_of(kubectl, BY_WORKLOAD, job["metadata"]["name"], count=1)
    assert injected_run(pod) == run_id(job, cluster)
    metadata = json.loads(variables(pod["spec"]["containers"][0])["GKE_DIAGON_METADATA"])
    assert metadata["parent-workload"] == "cronjob"


def _run(kubectl: Kubectl, pod: Object, *command: str) -> str:
    """Wait until a pod is ready and run a command in its first container."""
    name, where = pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", where, "--timeout=90s", timeout_s=100)
    return kubectl("exec", name, where, f"--container={pod['spec']['containers'][0]['name']}", "--", *command)


def _environment(kubectl: Kubectl, pod: Object) -> dict[str, str]:
    listed = _run(kubectl, pod, make.PYTHON, "-c", "import json, os; print(json.dumps(dict(os.environ)))")
    environment: dict[str, str] = json.loads(listed)
    return environment


def _incarnation(kubectl: Kubectl, name: str) -> Any:
    """Return the spec of a workload and the uids of its pods, to detect changes and restarts."""
    pods = pods_of(kubectl, BY_WORKLOAD, name, count=PODS[name])
    workload = kubectl.get(OF_WORKLOADS[name]["kind"], name, f"--namespace={BY_WORKLOAD}")
    return _filled(workload["spec"]), sorted(pod["metadata"]["uid"] for pod in pods)


def _filled(value: Any) -> Any:
    """Return the value without empty objects, which controllers add and apply removes."""
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if isinstance(value, dict):
        return {key: filled for key, each in value.items() if (filled := _filled(each)) != {}}
    return value
