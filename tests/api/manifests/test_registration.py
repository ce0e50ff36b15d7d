from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.manifests.registration import rules, webhooks
from mldiagnostics_api.workloads.kinds import WORKLOADS
from support.cluster import builders as a
from support.cluster.impersonation import Requests, until

if TYPE_CHECKING:
    from cluster.envtest import ApiServer

Labels = dict[str, str]
PODS = [entry for entry in webhooks() if entry["rules"][0]["resources"] == ["pods"]]

OPT_IN = "managed-mldiagnostics-gke"
NAME = "kubernetes.io/metadata.name"
OWNERS = [workload for workload in WORKLOADS if workload.kind not in {"Pod", "CronJob", "RayCronJob"}]


def selects(selector: dict[str, Any], labels: Labels) -> bool:
    """Return whether a label selector with In and NotIn matches these labels (metav1.LabelSelector)."""
    return all(
        (labels.get(term["key"]) in term["values"]) is (term["operator"] == "In")
        for term in selector["matchExpressions"]
    )


@given(
    st.sampled_from(["ml", "default", "kube-system", "kube-public", "kube-node-lease"]),
    st.sampled_from([None, "true", "false", "yes"]),
    st.sampled_from([None, "true", "false"]),
)
def test_a_namespace_matches_one_entry_unless_it_is_excluded(name: str, label: str | None, exempt: str | None) -> None:
    labels = {NAME: name, OPT_IN: label, "diagon-webhook-exempt": exempt}
    present = {key: value for key, value in labels.items() if value is not None}
    selected = [entry["name"] for entry in PODS if selects(entry["namespaceSelector"], present)]
    kept_out = name.startswith("kube-") or exempt == "true"
    entry = "namespace" if label == "true" else "workload"
    assert selected == ([] if kept_out else [f"{entry}.injection.diagon.gke.io"])


def test_a_failing_webhook_never_blocks_a_pod_or_a_schedule() -> None:
    for entry in webhooks():
        assert entry["failurePolicy"] == "Ignore"
        assert entry["sideEffects"] == "None"
        assert entry["timeoutSeconds"] == 3


def test_the_webhook_may_read_only_owners_and_namespaces() -> None:
    assert {verb for rule in rules() for verb in rule["verbs"]} == {"get", "list", "watch"}
    granted = {(group, kind) for rule in rules() for group in rule["apiGroups"] for kind in rule["resources"]}
    assert granted == {(workload.group, workload.plural) for workload in OWNERS} | {("", "namespaces")}


@pytest.fixture(scope="module")
def api(api_server: ApiServer) -> Requests:
    return Requests(api_server.kubeconfig)


@pytest.fixture(scope="module")
def namespace(api: Requests) -> str:
    """A namespace that rejects pods which the API server would not send to the webhook.

    The API server evaluates them as a ValidatingAdmissionPolicy: the same language and the same variables.
    """
    name = f"registration-{uuid4().hex[:8]}"
    api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    conditions = [condition for entry in PODS for condition in entry["matchConditions"]]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    here = {"namespaceSelector": {"matchLabels": {NAME: name}}}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule], **here},
        "validations": [{"expression": c["expression"], "message": "is not sent"} for c in conditions],
    }
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    made = api("POST", policies, {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201, made.message
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    api(
        "POST",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        {"metadata": {"name": name}, "spec": binding},
    )
    until(lambda: not sent(api, name, a.pod("early")), "the policy is in force")
    return name


def sent(api: Requests, namespace: str, pod: dict[str, Any]) -> bool:
    metadata = {key: pod["metadata"][key] for key in ("name", "labels", "ownerReferences") if key in pod["metadata"]}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "train", "image": "train:1"}]}}
    answer = api("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    assert answer.status == 201 or "is not sent" in answer.message, answer.message
    return answer.status == 201


@pytest.mark.apiserver
class TestByTheApiServer:
    def test_the_entries_are_accepted(self, api: Requests) -> None:
        for entry in webhooks():
            entry["clientConfig"]["service"] |= {"namespace": "gke-mldiagnostics", "name": "webhook"}
            configuration = {"metadata": {"name": f"test-{uuid4().hex[:8]}"}, "webhooks": [entry]}
            path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?dryRun=All"
            answer = api("POST", path, configuration)
            assert answer.status == 201, answer.message

    @pytest.mark.parametrize("workload", OWNERS, ids=lambda workload: workload.kind)
    def test_pods_of_every_kind_are_sent(self, api: Requests, namespace: str, workload: Any) -> None:
        owner = a.thing("owner", kind=workload.kind, api_version=workload.api_version)
        assert sent(api, namespace, a.pod(owner=owner))

    def test_other_pods_are_sent_if_they_have_the_label(self, api: Requests, namespace: str) -> None:
        agent = a.thing("agent", kind="DaemonSet", api_version="apps/v1")
        job = a.thing("job", kind="Job", api_version="example.com/v1")
        for pod in (a.pod(), a.pod(owner=agent), a.pod(owner=job)):
            assert not sent(api, namespace, pod)
            pod["metadata"]["labels"] = {OPT_IN: "true"}
            assert sent(api, namespace, pod)

    def test_an_owner_that_does_not_control_the_pod_does_not_count(self, api: Requests, namespace: str) -> None:
        pod = a.pod()
        pod["metadata"]["ownerReferences"] = [a.owned("trainer", "Job", "batch/v1", controller=False)]
        assert not sent(api, namespace, pod)
