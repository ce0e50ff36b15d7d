"""The definition of MLRun on a real API server: immutable fields, the largest status, and kubectl."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from cluster.tools import tool
from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.v1alpha1 import MLRunStatus
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_ATTEMPTS, MAX_EXCEPTIONS, MAX_FINDINGS
from support.cluster.impersonation import Requests, until

if TYPE_CHECKING:
    from cluster.envtest import ApiServer

pytestmark = pytest.mark.apiserver

CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{RUNS.definition_name}"
T = "2026-11-21T03:04:05Z"
RUN = "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"
WORKLOAD = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "trainer", "uid": "u"}
LONG = "x" * 1024
STATUS: dict[str, Any] = {
    "runId": RUN,
    "aliases": ["0b9d4ed8-5ad9-4b51-9d0c-44c1b3c0f9c7"],
    "displayName": "x" * 253,
    "reportedName": "x" * 256,
    "reportedTags": [f"{number:064}" for number in range(32)],
    "reportedNotes": "x" * 2000,
    "storageLocation": LONG,
    "reportedStorage": LONG,
    "phase": "Failed",
    "reason": "Failed",
    "message": LONG,
    "workload": "JobSet/trainer",
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": "Failed",
            "message": LONG,
            "lastTransitionTime": T,
            "observedGeneration": 1,
        }
        for kind in ("Admitted", "Started", "Reporting", "Profilable", "Complete")
    ],
    "observedGeneration": 1,
    "independent": True,
    "attempt": 3,
    "attempts": [
        {
            "attempt": n,
            "controllerAttempt": n,
            "containerRestarts": 2**31 - 1,
            "podUid": "u" * 64,
            "startTime": T,
            "endTime": T,
            "reason": "Restarted",
            "message": LONG,
        }
        for n in range(MAX_ATTEMPTS)
    ],
    "startTime": T,
    "completionTime": T,
    "hosts": {
        "expected": 4096,
        "reporting": 4000,
        "summary": "4000/4096",
        "restarts": 2**31 - 1,
        "exceptions": [
            {
                "host": f"trainer-{n}",
                "rank": n,
                "slice": 0,
                "node": "n",
                "reason": "Lost",
                "message": LONG,
                "lastReportTime": T,
            }
            for n in range(MAX_EXCEPTIONS)
        ],
    },
    "progress": {"step": 2**40, "stepTimeSeconds": 0.21, "stepTime": "210 ms", "lastStepTime": T},
    "metrics": {f"m{n}": 0.5 for n in range(MAX_METRICS)},
    "goodput": {
        "ratio": 0.934,
        "summary": "93.4%",
        "elapsedSeconds": 100.5,
        "productiveSeconds": 93.5,
        "unproductiveSeconds": {"tpu_initialization": 7.5},
        "disruptions": 3,
        "asOfTime": T,
    },
    "configs": {"software": {"jax": "0.10"}, "hardware": {"chips": "256"}, "user": {"lr": "0.1"}, "omitted": 1},
    "profileSessions": [
        {
            "id": f"s{n}",
            "state": "Captured",
            "source": "Capture",
            "capture": "c",
            "directory": LONG,
            "startTime": T,
            "stopTime": T,
        }
        for n in range(MAX_SESSIONS)
    ],
    "findings": [
        {
            "code": f"Code{n}",
            "severity": "warning",
            "message": LONG,
            "hosts": ["trainer-0"],
            "session": "s0",
            "capture": "c",
            "time": T,
        }
        for n in range(MAX_FINDINGS)
    ],
    "lastHeartbeatTime": T,
    "url": "https://view.example/runs/trainer",
}


@pytest.fixture(scope="module")
def api(api_server: ApiServer) -> Requests:
    requests = Requests(api_server.kubeconfig)
    path, kind = f"{CRD}?fieldManager=test&force=true", "application/apply-patch+yaml"
    applied = requests("PATCH", path, definition_of(RUNS), kind=kind)
    assert applied.status in {200, 201}, applied.message
    until(lambda: "Established" in _true_conditions(requests), "the CRD is served")
    return requests


@pytest.fixture
def namespace(api: Requests) -> str:
    name = f"runs-{uuid4().hex[:8]}"
    assert api("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    return name


def _true_conditions(api: Requests) -> set[str]:
    conditions = api("GET", CRD).body.get("status", {}).get("conditions") or []
    return {condition["type"] for condition in conditions if condition["status"] == "True"}


def _run(name: str = "trainer", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": name}, "spec": spec}


def _path(namespace: str) -> str:
    return f"/apis/{RUNS.api_version}/namespaces/{namespace}/{RUNS.plural}"


def test_what_the_run_is_cannot_change_but_its_settings_can(api: Requests, namespace: str) -> None:
    assert not {"NonStructuralSchema"} & _true_conditions(api)
    path = _path(namespace)
    for name, spec in {"trainer": {"runId": RUN, "workloadRef": WORKLOAD}, "by-hand": {}}.items():
        made = api("POST", f"{path}?fieldValidation=Strict", _run(name, **spec))
        assert made.status == 201, made.message
    changes: list[tuple[str, dict[str, Any]]] = [
        ("trainer", {"workloadRef": {"uid": "other"}}),
        ("trainer", {"workloadRef": None}),
        ("trainer", {"runId": "other"}),
        ("trainer", {"runId": None}),
        ("by-hand", {"runId": RUN}),
    ]
    for name, spec in changes:
        changed = api.merge_patch(f"{path}/{name}", {"spec": spec})
        assert changed.status == 422, spec
        assert f"{next(iter(spec))} is immutable; create another MLRun for another run" in changed.message
    settings = {
        "displayName": "x",
        "tags": ["a"],
        "notes": "n",
        "retention": {"ttlSecondsAfterFinished": 60},
        "storageLocation": "gs://b/x",
    }
    assert api.merge_patch(f"{path}/trainer", {"spec": settings}).status == 200
    outside = api.merge_patch(f"{path}/trainer", {"spec": {"storageLocation": "gs://b/../x"}})
    assert "must not contain '..'" in outside.message


def test_the_largest_status_is_stored_whole_and_shown_by_kubectl(
    api: Requests, namespace: str, api_server: ApiServer
) -> None:
    path = _path(namespace)
    api("POST", path, _run(runId=RUN, workloadRef=WORKLOAD))
    api("POST", path, _run("other"))
    written = api.merge_patch(f"{path}/trainer/status", {"status": STATUS})
    assert written.status == 200, written.message
    assert written.body["status"] == STATUS
    assert len(json.dumps(written.body)) < 256 * 1024
    assert {name for name, value in MLRunStatus.model_validate(STATUS) if value is None} == set()
    api.merge_patch(f"{path}/other/status", {"status": {"phase": "Active"}})
    unfinished = api("GET", f"{path}?fieldSelector=status.phase!=Completed,status.phase!=Failed")
    assert [item["metadata"]["name"] for item in unfinished.body["items"]] == ["other"]

    def kubectl(*arguments: str) -> str:
        command = [str(tool("kubectl")), "--kubeconfig", str(api_server.kubeconfig), "-n", namespace, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert "condition met" in kubectl("wait", "mlrun/trainer", "--for=condition=Complete", "--timeout=60s")
    header, row = kubectl("get", "mlr", "trainer").splitlines()
    assert header.split() == ["NAME", "PHASE", "ATTEMPT", "HOSTS", "STEP", "STEP", "TIME", "GOODPUT", "AGE"]
    assert row.split()[:8] == f"trainer Failed 3 4000/4096 {2**40} 210 ms 93.4%".split()
    assert "JobSet/trainer" in kubectl("get", "mlruns", "-o", "wide")
    assert "Reporting hosts of expected hosts" in kubectl("explain", "mlrun.status.hosts.summary")
