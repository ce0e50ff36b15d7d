"""CustomResourceDefinition on a real API server: accepted objects, rejected objects and the messages."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml
from cluster.paths import REPOSITORY
from cluster.tools import tool
from mldiagnostics_api.__main__ import generated
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus, read_connection
from support.cluster.builders import connection, peer_connection
from support.cluster.impersonation import Answer, Requests, until

if TYPE_CHECKING:
    from cluster.envtest import ApiServer

SAMPLES = sorted(
    path
    for path in (REPOSITORY / "examples").rglob("*.yaml")
    if "kind: MLDiagnosticsConnection" in path.read_text(encoding="utf-8")
)
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mldiagnosticsconnections.diagon.gke.io"

FULL_STATUS: dict[str, Any] = {
    "phase": "Succeeded",
    "message": "2 of 2 targets captured",
    "startTime": "2026-11-21T03:04:05Z",
    "completionTime": "2026-11-21T03:04:15Z",
    "captureResult": {"status": "Succeeded", "errorMessage": "", "outputLocation": "gs://b/x"},
    "conditions": [
        {
            "type": "Complete",
            "status": "True",
            "reason": "Succeeded",
            "message": "done",
            "lastTransitionTime": "2026-11-21T03:04:15Z",
            "observedGeneration": 1,
        }
    ],
    "observedGeneration": 1,
    "sessionId": "capture-1",
    "attempt": 1,
    "planningTrials": 1,
    "holder": "operator-0/uid/1",
    "plannedStartTime": "2026-11-21T03:04:07.123456Z",
    "deadline": "2026-11-21T03:05:05Z",
    "progress": "2/2",
    "targets": {"total": 2, "captured": 2, "failed": 0, "skipped": 0},
    "startSkewMilliseconds": 3,
    "bytes": 2**33,
    "results": [
        {
            "pod": "trainer-0",
            "uid": "u",
            "node": "n",
            "rank": 0,
            "slice": 0,
            "localRank": 1,
            "port": 9999,
            "state": "Captured",
            "reason": "Captured",
            "message": "",
            "file": "gs://b/x/plugins/profile/s/trainer-0.xplane.pb",
            "bytes": 2**32,
            "startTime": "2026-11-21T03:04:07.123456Z",
            "stopTime": "2026-11-21T03:04:09.123456Z",
        }
    ],
    "diagnosis": {
        "state": "Done",
        "summary": "SlowHost",
        "critical": 1,
        "warnings": 0,
        "findings": [
            {
                "code": "SlowHost",
                "severity": "critical",
                "message": "rank 0 arrives 19 ms after the others",
                "nextStep": "look at its input",
                "phase": "input",
                "operation": "next_batch",
                "costSeconds": 0.019,
                "costPercent": 46.5,
                "targets": [{"pod": "trainer-0", "node": "n", "rank": 0}],
            }
        ],
        "runs": ["38ecfc8a"],
    },
}


def test_the_generated_files_are_up_to_date() -> None:
    for path, text in generated().items():
        assert (REPOSITORY / path).read_text(encoding="utf-8") == text, f"{path}: run `make manifests`"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_is_parsed_and_has_only_known_fields(path: Any) -> None:
    body = yaml.safe_load(path.read_text(encoding="utf-8"))
    body["metadata"] |= {"namespace": "default", "uid": "u"}
    spec = read_connection(body).spec.model_dump(by_alias=True, exclude_none=True)
    assert spec == body["spec"] | {
        "triggerCapture": {"profiler": "google_cloud_mldiagnostics"} | body["spec"]["triggerCapture"]
    }


@pytest.fixture(scope="module")
def api(api_server: ApiServer) -> Requests:
    requests = Requests(api_server.kubeconfig)
    applied = requests(
        "PATCH",
        f"{CRD}?fieldManager=test&force=true",
        definition_of(CONNECTIONS),
        kind="application/apply-patch+yaml",
    )
    assert applied.status in {200, 201}, applied.message
    until(lambda: _condition(requests, "Established") == "True", "the CRD is served")
    return requests


@pytest.fixture
def captures(api: Requests) -> str:
    """Path of the captures in a namespace of the test."""
    namespace = f"crd-{uuid4().hex[:8]}"
    assert api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    return f"/apis/diagon.gke.io/v1alpha1/namespaces/{namespace}/mldiagnosticsconnections"


@pytest.mark.apiserver
class TestOnARealApiServer:
    def test_the_schema_is_structural(self, api: Requests) -> None:
        assert _condition(api, "NonStructuralSchema") is None
        assert _condition(api, "NamesAccepted") == "True"

    @pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
    def test_every_sample_is_accepted_unchanged(self, api: Requests, captures: str, path: Any) -> None:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
        if namespace := body["metadata"].get("namespace"):
            captures = f"/apis/{CONNECTIONS.api_version}/namespaces/{namespace}/{CONNECTIONS.plural}"
        answer = api("POST", f"{captures}?fieldValidation=Strict&dryRun=All", body)
        assert answer.status == 201, answer.message

    @pytest.mark.parametrize(
        ("trigger", "field", "rule"),
        [
            ({}, "spec.triggerCapture", "set exactly one of podName and target"),
            (
                {"podName": "a", "target": {"workloadRef": {"kind": "Job", "name": "b"}}},
                "spec.triggerCapture",
                "set exactly one of podName and target",
            ),
            (
                {"podName": "a", "durationSeconds": 0},
                "spec.triggerCapture.durationSeconds",
                "equal to 1",
            ),
            (
                {"podName": "a", "durationSeconds": 1, "durationMilliseconds": 1},
                "spec.triggerCapture.durationMilliseconds",
                "at most one of durationSeconds and durationMilliseconds",
            ),
            ({"podName": "a", "capturePort": 65536}, "spec.triggerCapture.capturePort", "less than or equal to 65535"),
            ({"podName": "a b"}, "spec.triggerCapture.podName", "should match"),
            ({"podName": "a", "profiler": "perf"}, "spec.triggerCapture.profiler", "google_cloud_mldiagnostics"),
            (
                {"podName": "a", "storageLocation": "gs://b/x/../y"},
                "spec.triggerCapture.storageLocation",
                "must not contain '..'",
            ),
            (
                {"podName": "a", "recording": "Past", "delivery": "Workload"},
                "spec.triggerCapture.recording",
                "remove delivery Workload",
            ),
            (
                {"podName": "a", "pulse": True, "diagnosis": "Off"},
                "spec.triggerCapture.pulse",
                "remove diagnosis and recording",
            ),
            (
                {"podName": "a", "pulse": True, "durationMilliseconds": 10_001},
                "spec.triggerCapture.pulse",
                "at most 10000 ms",
            ),
            ({"target": {}}, "spec.triggerCapture.target", "exactly one of runRef, workloadRef and selector"),
            (
                {"target": {"runRef": {"name": "a"}, "selector": {"matchLabels": {"a": "b"}}}},
                "spec.triggerCapture.target",
                "exactly one of runRef, workloadRef and selector",
            ),
            (
                {"target": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
                "spec.triggerCapture.target.selector.matchExpressions[0].values",
                "In and NotIn need values",
            ),
            ({"podName": "a", "podNamespace": "a/b"}, "spec.triggerCapture.podNamespace", "should match"),
            ({"target": {"selector": {}}}, "spec.triggerCapture.target.selector", "would match every pod"),
            (
                {"target": {"workloadRef": {"kind": "CronJob", "name": "a"}}},
                "spec.triggerCapture.target.workloadRef.kind",
                "supported values",
            ),
            (
                {"target": {"workloadRef": {"kind": "Job", "name": "a"}, "ranks": "1-"}},
                "spec.triggerCapture.target.ranks",
                "should match",
            ),
            ({"podName": "a", "minimumCaptured": "0%"}, "spec.triggerCapture.minimumCaptured", "should match"),
            (
                {"podName": "a", "minimumCaptured": 0},
                "spec.triggerCapture.minimumCaptured",
                "equal to 1",
            ),
        ],
    )
    def test_bad_input_is_rejected_with_field_and_rule(
        self, api: Requests, captures: str, trigger: dict[str, Any], field: str, rule: str
    ) -> None:
        body = _bare(connection())
        body["spec"]["triggerCapture"] = trigger
        answer = api("POST", captures, body)
        assert answer.status == 422
        assert field in [cause["field"] for cause in answer.body["details"]["causes"]]
        assert rule in answer.message

    def test_only_cancel_and_the_time_to_live_of_a_capture_can_be_changed(self, api: Requests, captures: str) -> None:
        # The longest list of pods that is accepted, so that the cost of the rules is the highest.
        pods = ",".join(f"trainer-workers-0-{n:05}-abcde" for n in range(4000))
        assert len(pods) > 100_000
        assert api("POST", captures, _bare(peer_connection(pods))).status == 201
        path = f"{captures}/capture"
        edited = api.merge_patch(path, {"spec": {"triggerCapture": {"durationSeconds": 3}}})
        assert edited.status == 422
        assert "triggerCapture is immutable; create another object" in edited.message
        assert api.merge_patch(path, {"spec": {"ttlSecondsAfterFinished": 60}}).status == 200
        assert api.merge_patch(path, {"spec": {"cancel": True}}).status == 200
        for undo in (False, None):
            undone = api.merge_patch(path, {"spec": {"cancel": undo}})
            assert undone.status == 422
            assert "cancel cannot be unset" in undone.message

    def test_no_field_of_the_status_is_pruned(self, api: Requests, captures: str) -> None:
        api("POST", captures, _bare(peer_connection("a")))
        written = api.merge_patch(f"{captures}/capture/status", {"status": FULL_STATUS})
        assert written.status == 200, written.message
        assert written.body["status"] == FULL_STATUS
        status = ConnectionStatus.model_validate(FULL_STATUS)
        assert {name for name, value in status if value is None} == set()

    def test_status_is_a_subresource(self, api: Requests, captures: str) -> None:
        api("POST", captures, _bare(peer_connection("a")))
        assert "status" not in api.merge_patch(f"{captures}/capture", {"status": {"phase": "Succeeded"}}).body
        both = {"spec": {"cancel": True}, "status": {"phase": "Failed"}}
        patched = api.merge_patch(f"{captures}/capture/status", both)
        assert "cancel" not in patched.body["spec"]
        assert patched.body["status"]["phase"] == "Failed"

    def test_unfinished_captures_can_be_selected(self, api: Requests, captures: str) -> None:
        for phase in ("Pending", "Succeeded", "Failed"):
            api("POST", captures, _bare(connection(phase.lower(), podName="a")))
            api.merge_patch(f"{captures}/{phase.lower()}/status", {"status": {"phase": phase}})
        listed = api("GET", f"{captures}?fieldSelector=status.phase!=Succeeded,status.phase!=Failed")
        assert [item["metadata"]["name"] for item in listed.body["items"]] == ["pending"]

    def test_kubectl_wait_get_and_explain_work(self, api: Requests, captures: str, api_server: ApiServer) -> None:
        namespace = captures.split("/")[5]
        api("POST", captures, _bare(peer_connection("a")))
        api.merge_patch(f"{captures}/capture/status", {"status": FULL_STATUS})

        def kubectl(*arguments: str) -> str:
            command = [str(tool("kubectl")), "--kubeconfig", str(api_server.kubeconfig), "-n", namespace, *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        assert "condition met" in kubectl("wait", "mldc/capture", "--for=condition=Complete", "--timeout=60s")
        header, row = kubectl("get", "mldc").splitlines()
        assert header.split() == ["NAME", "STATUS", "PROGRESS", "SESSION", "DIAGNOSIS", "AGE"]
        assert row.split()[:4] == ["capture", "Succeeded", "2/2", "capture-1"]
        assert "gs://b/x" in kubectl("get", "mldiagnostics", "-o", "wide")
        assert "Comma-separated names" in kubectl("explain", "mldc.spec.triggerCapture.podName")

    def test_the_server_documents_every_field(self, api: Requests) -> None:
        document = api("GET", "/openapi/v3/apis/diagon.gke.io/v1alpha1")
        schemas = document.body["components"]["schemas"]
        (ours,) = (schema for name, schema in schemas.items() if name.endswith(".MLDiagnosticsConnection"))
        undocumented = [
            path for path, field in _properties(ours) if not field.get("description") and not field.get("allOf")
        ]
        assert undocumented == []


def _bare(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"metadata": {"name": body["metadata"]["name"]}}


def _condition(api: Requests, type_: str) -> str | None:
    answer: Answer = api("GET", CRD)
    conditions = answer.body.get("status", {}).get("conditions") or []
    return next((condition["status"] for condition in conditions if condition["type"] == type_), None)


def _properties(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    children = {**schema.get("properties", {}), **schema.get("items", {}).get("properties", {})}
    return [
        pair
        for name, child in children.items()
        for pair in [(f"{path}.{name}", child), *_properties(child, f"{path}.{name}")]
    ]


def test_the_samples_are_found() -> None:
    assert {path.name for path in SAMPLES} >= {"six-fields.yaml", "workload.yaml", "selector.yaml", "in-the-pod.yaml"}
