"""The definition of MLDiagnosticsSchedule and its admission policy on a real API server."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml
from cluster.paths import REPOSITORY
from cluster.tools import tool
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.names import AUTHOR_ANNOTATION
from mldiagnostics_api.resources import CONNECTIONS, SCHEDULES
from mldiagnostics_api.schedules.template import rules_of
from mldiagnostics_api.v1alpha1.schedule import MAX_CAPTURES, ScheduleStatus, read_schedule
from release.parts import OPERATOR
from release.render import rendered
from support.cluster.impersonation import Requests, until

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer

Object = dict[str, Any]
SAMPLES = sorted((REPOSITORY / "examples/schedules").glob("*.yaml"))
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
T = "2026-11-21T03:04:05Z"
LONG = "x" * 512
FULL_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [
        {"type": kind, "status": "True", "reason": "Scheduled", "message": LONG, "lastTransitionTime": T}
        for kind in ("Ready", "BudgetAvailable")
    ],
    "schedule": "every 6h",
    "runs": 3,
    "lastCaptureTime": T,
    "nextCaptureTime": T,
    "capturesLastDay": MAX_CAPTURES,
    "bytesLastDay": 2**40,
    "refused": 7,
    "refusals": [{"reason": "Bytes", "count": 7, "lastTime": T, "run": "run-a", "message": LONG}],
    "captures": [
        {
            "name": f"{'n' * 40}-{n:012}",
            "run": "r" * 51,
            "time": T,
            "slotTime": T,
            "trigger": "StepTimeRise",
            "attempt": 3,
            "value": 0.1534,
            "message": LONG,
            "state": "Finished",
            "bytes": 2**40,
        }
        for n in range(MAX_CAPTURES)
    ],
}


def schedule(name: str = "s", **spec: Any) -> Object:
    return {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_is_parsed_and_has_only_known_fields(path: Path) -> None:
    body = yaml.safe_load(path.read_text(encoding="utf-8"))
    body["metadata"] |= {"namespace": "default", "uid": "u", "creationTimestamp": T}
    parsed = read_schedule(body)
    assert parsed.spec.model_dump(mode="json", by_alias=True, exclude_none=True) == body["spec"]
    timing = rules_of(parsed).timing
    assert timing is not None
    assert timing.after(1_790_000_000.0) is not None


@pytest.fixture(scope="module")
def api(api_server: ApiServer) -> Requests:
    requests = Requests(api_server.kubeconfig)
    for resource in (SCHEDULES, CONNECTIONS):
        path = f"{CRDS}/{resource.definition_name}"
        body, apply = definition_of(resource), "application/apply-patch+yaml"
        applied = requests("PATCH", f"{path}?fieldManager=test&force=true", body, kind=apply)
        assert applied.status in {200, 201}, applied.message

    def served() -> bool:
        conditions = requests("GET", f"{CRDS}/{SCHEDULES.definition_name}").body["status"].get("conditions") or ()
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    until(served, "the definition is served")
    return requests


@pytest.fixture
def namespace(api: Requests) -> str:
    name = f"mlds-{uuid4().hex[:8]}"
    assert api("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    return name


def path_in(namespace: str) -> str:
    return f"/apis/diagon.gke.io/v1alpha1/namespaces/{namespace}/mldiagnosticsschedules"


@pytest.mark.apiserver
def test_samples_are_accepted_and_applied_again_without_a_change(api: Requests, namespace: str) -> None:
    for path in SAMPLES:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
        where = f"{path_in(namespace)}/{body['metadata']['name']}?fieldManager=me"
        first = api("PATCH", where, body, kind="application/apply-patch+yaml")
        assert first.status == 201, first.message
        again = api("PATCH", where, body, kind="application/apply-patch+yaml")
        assert again.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


@pytest.mark.apiserver
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "set schedule, triggers or both"),
        ({"triggers": []}, "set schedule, triggers or both"),
        ({"schedule": {}}, "set exactly one of every and cron"),
        ({"schedule": {"every": "1h", "cron": "0 0 * * *"}}, "set exactly one of every and cron"),
        ({"schedule": {"every": "1h", "timeZone": "UTC"}}, "timeZone needs cron"),
        ({"schedule": {"every": "1.5h"}}, "should match"),
        ({"schedule": {"cron": "x" * 200}}, "Too long"),
        ({"triggers": [{"type": "Slow"}]}, "Unsupported value"),
        ({"triggers": [{"type": "Hanging"}, {"type": "Hanging"}]}, "Duplicate value"),
        ({"triggers": [{"type": "Hanging", "thresholdPercent": 5}]}, "have their limits in spec.signals"),
        ({"schedule": {"every": "1h"}, "target": {"runRef": {"name": "a"}, "matchLabels": {}}}, "set at most one of"),
        ({"schedule": {"every": "1h"}, "capture": {"storageLocation": "gs://b/../c"}}, "must not contain '..'"),
        ({"schedule": {"every": "1h"}, "budget": {"captures": MAX_CAPTURES + 1}}, "less than or equal to"),
    ],
)
def test_wrong_schedules_are_refused_with_a_reason(api: Requests, namespace: str, spec: Object, message: str) -> None:
    refused = api("POST", path_in(namespace), schedule(**spec))
    assert refused.status == 422
    assert message in refused.message


@pytest.mark.apiserver
def test_the_largest_status_is_stored(api: Requests, namespace: str) -> None:
    assert api("POST", path_in(namespace), schedule(schedule={"every": "1h"})).status == 201
    written = api.merge_patch(f"{path_in(namespace)}/s/status", {"status": FULL_STATUS})
    assert written.status == 200, written.message
    assert written.body["status"] == FULL_STATUS
    parsed = ScheduleStatus.model_validate(written.body["status"])
    assert parsed.model_dump(mode="json", by_alias=True, exclude_none=True) == FULL_STATUS
    assert len(str(FULL_STATUS)) < 1024 * 1024


@pytest.mark.apiserver
def test_kubectl_shows_columns_and_explains(api: Requests, api_server: ApiServer, namespace: str) -> None:
    api("POST", path_in(namespace), schedule("nightly", schedule={"every": "6h"}))
    api.merge_patch(f"{path_in(namespace)}/nightly/status", {"status": {"schedule": "every 6h", "capturesLastDay": 2}})
    kubectl = [str(tool("kubectl")), f"--kubeconfig={api_server.kubeconfig}"]
    shown = subprocess.run(
        [*kubectl, "get", "mlds", "-n", namespace], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert shown[0].split() == ["NAME", "SCHEDULE", "SUSPEND", "RUNS", "TODAY", "REFUSED", "LAST", "NEXT", "AGE"]
    assert shown[1].split()[:3] == ["nightly", "every", "6h"]
    explained = subprocess.run([*kubectl, "explain", "mlds.spec.budget"], check=True, capture_output=True, text=True)
    assert "minimumIntervalSeconds" in explained.stdout


@pytest.mark.apiserver
def test_a_schedule_needs_the_permission_to_capture_and_an_allowed_place(api: Requests, namespace: str) -> None:
    _install_policy(api, namespace, {"policy.strictTenancy": True, "policy.maxDurationSeconds": 60})
    _grant(api, namespace, "author", ["mldiagnosticsschedules"])
    _grant(api, namespace, "capturer", ["mldiagnosticsschedules", "mldiagnosticsconnections"])
    good = schedule(schedule={"every": "1h"}, capture={"durationSeconds": 60})
    dry = f"{path_in(namespace)}?dryRun=All"
    until(lambda: api("POST", dry, good, user="capturer").status == 201, "the roles are known")
    until(lambda: "may not 'create'" in _message(api, dry, good, "author"), "the policy is in force")
    long = schedule(schedule={"every": "1h"}, capture={"durationSeconds": 61})
    assert "longer than the allowed 60 s" in _message(api, dry, long, "capturer")
    foreign = schedule(schedule={"every": "1h"}, capture={"storageLocation": "gs://others/x"})
    assert "is not below a location that is allowed" in _message(api, dry, foreign, "capturer")
    assert api("POST", path_in(namespace), good, user="capturer").status == 201
    label = api.merge_patch(f"{path_in(namespace)}/s", {"metadata": {"labels": {"a": "b"}}}, user="author")
    assert label.status == 200
    change = api.merge_patch(f"{path_in(namespace)}/s", {"spec": {"suspend": True}}, user="author")
    assert change.status == 403


@pytest.mark.apiserver
def test_nobody_makes_somebody_else_the_author(api: Requests, namespace: str) -> None:
    """The webhook notes the author; the policy holds if it is away, too."""
    _install_policy(api, namespace, {})
    for user in ("ana", "ben"):
        _grant(api, namespace, user, ["mldiagnosticsschedules", "mldiagnosticsconnections"])
    path, every = path_in(namespace), {"schedule": {"every": "1h"}}
    notes = {user: {AUTHOR_ANNOTATION: f"{user}\nsystem:authenticated"} for user in ("ana", "ben")}
    of = {user: {"metadata": {"annotations": note}} for user, note in notes.items()}

    def by(user: str) -> Object:
        body = schedule(**every)
        return {**body, "metadata": body["metadata"] | of[user]["metadata"]}

    until(lambda: "another user" in _message(api, f"{path}?dryRun=All", by("ben"), "ana"), "the policy is in force")
    assert api("POST", f"{path}?dryRun=All", schedule(**every), user="ana").status == 201
    assert api("POST", path, by("ana"), user="ana").status == 201
    one = f"{path}/s"
    other_spec = {"spec": {"suspend": True}}
    assert api.merge_patch(one, other_spec, user="ben").status == 403
    assert api.merge_patch(one, {"metadata": {"annotations": {AUTHOR_ANNOTATION: None}}}, user="ben").status == 403
    assert api.merge_patch(one, {"metadata": {"annotations": {"a": "b"}}}, user="ben").status == 200
    assert api.merge_patch(one, other_spec | of["ben"], user="ben").status == 200
    assert api.merge_patch(one, of["ana"], user="ben").status == 403


def _install_policy(api: Requests, namespace: str, values: Object) -> None:
    """Install the admission policy of schedules for one namespace."""
    for item in rendered(OPERATOR, {"watch.namespaces": [namespace]} | values):
        if item["kind"].startswith("ValidatingAdmissionPolicy") and item["metadata"]["name"].endswith("-schedules"):
            item["metadata"]["name"] = f"mlds-{namespace}"
            plural = "policies"
            if item["kind"].endswith("Binding"):
                item["spec"]["policyName"], plural = f"mlds-{namespace}", "policybindings"
            made = api("POST", f"/apis/admissionregistration.k8s.io/v1/validatingadmission{plural}", item)
            assert made.status == 201, made.message


def _message(api: Requests, path: str, body: Object, user: str) -> str:
    answer = api("POST", path, body, user=user)
    return "" if answer.status == 201 else answer.message


def _grant(api: Requests, namespace: str, user: str, resources: list[str]) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [{"apiGroups": ["diagon.gke.io"], "resources": resources, "verbs": ["create", "patch", "get"]}]
    assert api("POST", f"{rbac}/roles", {"metadata": {"name": user}, "rules": rules}).status == 201
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    binding = {"metadata": {"name": user}, "roleRef": reference, "subjects": subjects}
    assert api("POST", f"{rbac}/rolebindings", binding).status == 201
