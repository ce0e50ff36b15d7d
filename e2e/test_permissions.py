"""The operator with its service account uses exactly the permissions that the chart grants."""

import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from mldiagnostics_api.names import AUTHOR_ANNOTATION, RUN_LABEL
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_api.schedules.author import Author
from mldiagnostics_api.workloads.kinds import SELECTABLE_KINDS, WORKLOADS, workload_of
from mldiagnostics_kube.client.apiserver import path_to
from permission_scene import Permission, kubeconfig, permissions, refused, used
from release.parts import NAMESPACE, OPERATOR
from release.render import helm, rendered, setting
from support.cluster.charts import environment, one
from support.cluster.definitions import DEFINITIONS, permissive
from support.cluster.impersonation import Requests, until
from support.suite.isolation import of_programs

pytestmark = pytest.mark.apiserver

PUBLICATION = f"/api/v1/namespaces/{PUBLICATION_NAMESPACE}/configmaps/{PUBLICATION_NAME}"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{OPERATOR.name}-certificates"
AT_THE_END: Permission = ("update", "discovery.k8s.io", "endpointslices", f"{OPERATOR.name}-api-ipv4")
UNSEEN: set[Permission] = {
    # Server-side apply needs it to create a missing object; the audit log has `patch` in both cases.
    ("create", "", "secrets", f"{OPERATOR.name}-certificates"),
    # The slice of clusters with IPv6.
    ("get", "discovery.k8s.io", "endpointslices", f"{OPERATOR.name}-api-ipv6"),
    ("update", "discovery.k8s.io", "endpointslices", f"{OPERATOR.name}-api-ipv6"),
}
DIAGNOSED = {"volume.claim.enabled": True}
"""Values of an operator whose Jobs can read the traces."""
CAPTURES = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mldiagnosticsconnections"
RUNS = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mlruns"
SCHEDULES = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mldiagnosticsschedules"
PODS = "/api/v1/namespaces/default/pods"
DIAGNOSES = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "run",
        "labels": {"managed-mldiagnostics-gke": "true", "kueue.x-k8s.io/queue-name": "team"},
    },
    "spec": {
        "suspend": True,
        "template": {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}},
    },
}


def granted() -> set[Permission]:
    roles = [item for item in rendered(OPERATOR, DIAGNOSED) if item["kind"] in ("Role", "ClusterRole")]
    of_users = ("-view", "-capture", "-runs")
    return set(permissions(role for role in roles if not role["metadata"]["name"].endswith(of_users)))


@contextmanager
def operator(server: ApiServer, requests: Requests, folder: Path) -> Iterator[None]:
    """Run the operator with the chart's environment and a token of its service account."""
    objects = rendered(OPERATOR, DIAGNOSED)
    for name, content in one(objects, "ConfigMap", f"{OPERATOR.name}-policy")["data"].items():
        (folder / name).write_text(content)
    settings = {name: value for name, value in environment(objects, OPERATOR).items() if value != "pod"}
    environ = settings | {
        **of_programs(),
        "KUBECONFIG": str(kubeconfig(server, requests, OPERATOR, folder / "kubeconfig")),
        "GCE_METADATA_HOST": "127.0.0.1:1",
        "POD_NAME": "operator-0",
        "POD_NAMESPACE": NAMESPACE,
        "POD_UID": "uid-of-operator-0",
        "POD_IP": "198.18.0.1",
        "MLDIAG_CONTROL_PLANE_PORT": "0",
        "MLDIAG_POLICY_FILE": str(folder / "policy.json"),
        "MLDIAG_DIAGNOSIS_JOB_FILE": str(folder / "diagnosis-job.json"),
        "MLDIAG_VOLUME_ROOT": str(folder),
        "MLDIAG_HTTP_PORT": "0",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "mldiagnostics_operator"], env=environ, stdout=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)


def use_control_plane(requests: Requests, log: Path) -> None:
    """Report a run with the published certificates; delete the Secret, which the operator creates again."""

    def published() -> dict[str, str]:
        return requests("GET", PUBLICATION).body.get("data") or {}

    def ports() -> list[int]:
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
        return [line["port"] for line in lines if "control-plane API is served" in line["message"]]

    until(lambda: bool(published() and ports()), "the API is served and its address published")
    (port,) = ports()
    path = "/api/v1/namespaces/default/serviceaccounts"
    until(
        lambda: requests("POST", path, {"metadata": {"name": "trainer"}}).status in (201, 409), "accounts can be made"
    )
    token = requests("POST", f"{path}/trainer/token", {"spec": {"audiences": ["mldiagnostics"]}}).body["status"][
        "token"
    ]
    trusting = ssl.create_default_context(cadata=published()["ca.crt"])
    trusting.check_hostname = False  # the certificate is for the Service
    report = {"v": 1, "incarnation": "00000001", "sequence": 1, "sent": 1.0, "rank": 0, "run": {"name": "by-hand"}}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"https://127.0.0.1:{port}/v1/runs/by-hand/reports", json.dumps(report).encode(), headers
    )
    with urllib.request.urlopen(request, context=trusting, timeout=60) as answer:
        assert answer.status == 200
    assert requests("DELETE", SECRET).status == 200
    until(lambda: "tls.crt" in requests("GET", SECRET).body.get("data", {}), "the Secret is created again")


def capture(name: str, *, ttl_s: int | None = None, **trigger: Any) -> dict[str, Any]:
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name},
        "spec": {"triggerCapture": trigger} | ({"ttlSecondsAfterFinished": ttl_s} if ttl_s is not None else {}),
    }


def serve_all_kinds(requests: Requests) -> None:
    """Install a definition of each kind of workload, because kinds that are not served are never watched."""
    kinds = [(each.api_version, each.kind) for each in WORKLOADS if "." in each.group and not each.groups]
    for api_version, kind in (*kinds, ("kueue.x-k8s.io/v1beta2", "Workload")):
        assert requests("POST", DEFINITIONS, permissive(api_version, kind)).status == 201
        group, _, version = api_version.partition("/")
        path = path_to(group, version, f"{kind.lower()}s")
        until(lambda path=path: requests("GET", path).status == 200, f"{path} is served")  # type: ignore[misc]


def make_expired_run(requests: Requests) -> None:
    """Make an ended run whose time to live is over, which the operator deletes, and one that it holds."""
    run = {"apiVersion": "diagon.gke.io/v1alpha1", "kind": "MLRun", "metadata": {"name": "ended"}}
    spec = {"retention": {"ttlSecondsAfterFinished": 0}}
    runs = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mlruns"
    assert requests("POST", runs, run | {"spec": spec}).status == 201
    held = {"metadata": {"name": "held"}, "spec": {"runId": "held", "retention": {"deleteArtifacts": True}}}
    assert requests("POST", runs, run | held).status == 201
    ended = {"status": {"phase": "Failed", "completionTime": "2026-01-01T00:00:00Z"}}
    assert requests.merge_patch(f"{runs}/ended/status", ended).status == 200


def end_a_pod_of_the_run(requests: Requests) -> None:
    """Delete a pod of the Job's run, whose node and events are read then."""

    def run_ids() -> set[str]:
        ids = {item["spec"].get("runId", "held") for item in requests("GET", RUNS).body["items"]}
        return ids - {"held", "by-hand"}

    until(lambda: bool(run_ids()), "the Job has a run")
    (run_id,) = run_ids()
    metadata = {"name": "run-0", "labels": {RUN_LABEL: run_label(run_id)}}
    spec = {"nodeName": "absent", "containers": [{"name": "train", "image": "train:1"}]}
    assert requests("POST", PODS, {"metadata": metadata, "spec": spec}).status == 201
    assert requests("DELETE", f"{PODS}/run-0", {"gracePeriodSeconds": 0}).status == 200


def make_captured(requests: Requests) -> str:
    """Make a finished capture that waits for its diagnosis; return the path of its Job."""
    made = requests("POST", CAPTURES, capture("captured", podName="absent"))
    assert made.status == 201
    at = "2026-01-01T00:00:00Z"
    status = {
        "phase": "Succeeded",
        "sessionId": "captured-1",
        "completionTime": at,
        "captureResult": {"status": "Succeeded", "outputLocation": "volume:///default/absent"},
        "conditions": [
            {"type": kind, "status": value, "reason": "R", "message": "", "lastTransitionTime": at}
            for kind, value in (("Complete", "True"), ("Diagnosed", "Unknown"))
        ],
        "diagnosis": {"state": "Pending"},
    }
    assert requests.merge_patch(f"{CAPTURES}/captured/status", {"status": status}).status == 200
    return f"{DIAGNOSES}/mldiag-diagnosis-{made.body['metadata']['uid']}"


def make_a_planned_capture(requests: Requests) -> None:
    """Make a schedule whose record has a capture without an object, as a leader leaves it that ends in the slot."""
    kind = {"apiVersion": "diagon.gke.io/v1alpha1", "kind": "MLDiagnosticsSchedule"}
    me = requests("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).body["status"]["userInfo"]
    author = Author.of_request(me)
    assert author is not None
    body = kind | {
        "metadata": {"name": "daily", "annotations": {AUTHOR_ANNOTATION: author.text}},
        "spec": {"schedule": {"every": "1d"}},
    }
    assert requests("POST", SCHEDULES, body).status == 201
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    planned = {"name": "daily-1", "run": "held", "time": now, "slotTime": now, "state": "Planned"}
    assert requests.merge_patch(f"{SCHEDULES}/daily/status", {"status": {"captures": [planned]}}).status == 200
    until(lambda: requests("GET", f"{CAPTURES}/daily-1").status == 200, "the capture of the schedule exists")


def finished(requests: Requests) -> set[str]:
    captures = requests("GET", CAPTURES).body["items"]
    phases = {item["metadata"]["name"]: item.get("status", {}).get("phase") for item in captures}
    return {name for name, phase in phases.items() if phase in ("Succeeded", "Failed")}


def one_of_each_kind() -> Iterator[dict[str, Any]]:
    yield capture("by-name", podName="absent")
    yield capture("by-label", target={"selector": {"matchLabels": {"app": "absent"}}})
    yield capture("by-run", target={"runRef": {"name": "absent"}})
    for kind in SELECTABLE_KINDS:
        workload = workload_of(kind)
        assert workload
        reference = {"apiVersion": workload.api_version, "kind": kind, "name": "absent"}
        yield capture(f"by-{kind.lower()}", target={"workloadRef": reference})


def test_every_permission_is_used_and_none_is_missed(tmp_path: Path) -> None:
    with apiserver(controller_manager=True, audited=True) as server:
        requests = Requests(server.kubeconfig)
        where = (f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}", "--create-namespace")
        values = [argument for key, value in DIAGNOSED.items() for argument in ("--set-json", setting(key, value))]
        helm("install", OPERATOR.name, *where, *values, chart=OPERATOR.chart)
        until(lambda: requests("GET", CAPTURES).status == 200, "captures are served")
        serve_all_kinds(requests)
        assert requests("POST", "/apis/batch/v1/namespaces/default/jobs", JOB).status == 201
        make_expired_run(requests)
        diagnosis = make_captured(requests)
        captures = list(one_of_each_kind())
        wanted = granted()
        assert wanted > UNSEEN
        with operator(server, requests, tmp_path):
            for item in captures:
                assert requests("POST", CAPTURES, item).status == 201
            names = {item["metadata"]["name"] for item in captures}
            until(lambda: finished(requests) >= names, "every capture is finished")
            short = capture("short", ttl_s=0, podName="absent")
            assert requests("POST", CAPTURES, short).status == 201
            until(
                lambda: requests("GET", f"{CAPTURES}/short").status == 404,
                "the capture is deleted after its time to live",
            )
            assert requests("POST", CAPTURES, capture("waits", podName="absent", waitForPodsSeconds=600)).status == 201
            until(
                lambda: requests("GET", f"{CAPTURES}/waits").body.get("status") is not None,
                "the capture waits for its pod",
            )
            assert requests("DELETE", f"{CAPTURES}/waits").status == 200
            until(lambda: requests("GET", diagnosis).status == 200, "the Job of a diagnosis exists")
            make_a_planned_capture(requests)
            use_control_plane(requests, tmp_path / "log")
            end_a_pod_of_the_run(requests)
            with suppress(AssertionError):  # the comparison below has a better message
                until(
                    lambda: used(server, OPERATOR, wanted) >= wanted - UNSEEN - {AT_THE_END}, "every permission is used"
                )
        assert refused(server, OPERATOR) == []
        assert used(server, OPERATOR, wanted) == wanted - UNSEEN
