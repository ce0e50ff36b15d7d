"""The operator with its service account uses exactly the permissions that the chart grants."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from mldiagnostics_api.workloads import SELECTABLE_KINDS, WORKLOADS, workload_of
from mldiagnostics_kube.apiserver import path_to
from permission_scene import Permission, kubeconfig, permissions, refused, used
from release.parts import NAMESPACE, OPERATOR
from release.render import helm, rendered
from support.definitions import DEFINITIONS, permissive
from support.impersonation import Requests, until

pytestmark = pytest.mark.apiserver

CAPTURES = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mldiagnosticsconnections"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "run", "labels": {"managed-mldiagnostics-gke": "true"}},
    "spec": {
        "suspend": True,
        "template": {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}},
    },
}


def granted() -> set[Permission]:
    roles = [item for item in rendered(OPERATOR) if item["kind"] in ("Role", "ClusterRole")]
    of_users = ("-view", "-capture", "-runs")
    return set(permissions(role for role in roles if not role["metadata"]["name"].endswith(of_users)))


@contextmanager
def operator(server: ApiServer, requests: Requests, folder: Path) -> Iterator[None]:
    """Run the operator with the chart's environment and a token of its service account."""
    objects = {item["kind"]: item for item in rendered(OPERATOR) if item["kind"] in ("Deployment", "ConfigMap")}
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    (policy,) = objects["ConfigMap"]["data"].values()
    (folder / "policy.json").write_text(policy)
    environment = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry} | {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(kubeconfig(server, requests, OPERATOR, folder / "kubeconfig")),
        "GCE_METADATA_HOST": "127.0.0.1:1",
        "POD_NAME": "operator-0",
        "POD_NAMESPACE": NAMESPACE,
        "POD_UID": "uid-of-operator-0",
        "MLDIAG_POLICY_FILE": str(folder / "policy.json"),
        "MLDIAG_VOLUME_ROOT": str(folder),
        "MLDIAG_HTTP_PORT": "0",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "mldiagnostics_operator"], env=environment, stdout=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def capture(name: str, *, ttl_s: int | None = None, **trigger: Any) -> dict[str, Any]:
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name},
        "spec": {"triggerCapture": trigger} | ({"ttlSecondsAfterFinished": ttl_s} if ttl_s is not None else {}),
    }


def serve_all_kinds(requests: Requests) -> None:
    """Install a definition of each kind of workload, because kinds that are not served are never watched."""
    for workload in WORKLOADS:
        if "." in workload.group and not workload.groups:
            definition = permissive(workload.api_version, workload.kind)
            assert requests("POST", DEFINITIONS, definition).status == 201
            path = path_to(workload.group, workload.versions[0], workload.plural)
            until(lambda path=path: requests("GET", path).status == 200, f"{workload.plural} are served")  # type: ignore[misc]


def finished(requests: Requests) -> set[str]:
    found = requests("GET", CAPTURES).body["items"]
    phases = {item["metadata"]["name"]: item.get("status", {}).get("phase") for item in found}
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
        helm("install", OPERATOR.name, *where, chart=OPERATOR.chart)
        until(lambda: requests("GET", CAPTURES).status == 200, "captures are served")
        serve_all_kinds(requests)
        assert requests("POST", "/apis/batch/v1/namespaces/default/jobs", JOB).status == 201
        captures = list(one_of_each_kind())
        with operator(server, requests, tmp_path):
            for item in captures:
                assert requests("POST", CAPTURES, item).status == 201
            names = {item["metadata"]["name"] for item in captures}
            until(lambda: finished(requests) == names, "every capture is finished")
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
            wanted = granted()
            with suppress(AssertionError):  # the comparison below has a better message
                until(lambda: used(server, OPERATOR, wanted) >= wanted, "every permission is used")
        assert refused(server, OPERATOR) == []
        assert used(server, OPERATOR, wanted) == wanted
