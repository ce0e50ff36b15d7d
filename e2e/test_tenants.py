"""The files of docs/how-to/tenants.md on a real API server: rights, storage and quotas of a namespace."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from cluster.paths import REPOSITORY
from cluster.tools import tool
from demo.kubectl import Kubectl
from release.parts import NAMESPACE, OPERATOR
from release.render import helm
from support.cluster.impersonation import Answer, Requests, until
from support.programs.documents import blocks

pytestmark = pytest.mark.apiserver

FILES = {
    block.title: block.text for block in blocks((REPOSITORY / "docs/how-to/tenants.md").read_text()) if block.title
}
RBAC = "rbac.authorization.k8s.io"
QUOTA = "/api/v1/namespaces/team-a/resourcequotas/mldiagnostics"
COUNTED = "count/mldiagnosticsconnections.diagon.gke.io"


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Requests]:
    """Requests to an API server with both namespaces, the operator's chart, and users with roles in `team-a`."""
    folder = tmp_path_factory.mktemp("page")
    with apiserver(controller_manager=True) as server:
        requests = Requests(server.kubeconfig)
        install(server, requests, folder)
        yield requests


def install(server: ApiServer, requests: Requests, folder: Path) -> None:
    kubectl = Kubectl(tool("kubectl"), server.kubeconfig)
    kubectl("apply", "--filename=-", stdin=FILES["team-a.yaml"])
    assert requests("POST", "/api/v1/namespaces", {"metadata": {"name": "team-b"}}).status == 201
    # The controller of quotas does not run here.
    status = {"status": {"hard": {COUNTED: "200"}, "used": {COUNTED: "0"}}}
    assert requests.merge_patch(f"{QUOTA}/status", status).status == 200
    for role in ("admin", "edit"):
        subjects = [{"apiGroup": RBAC, "kind": "User", "name": role}]
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": subjects}
        path = f"/apis/{RBAC}/v1/namespaces/team-a/rolebindings"
        assert requests("POST", path, binding).status == 201
    values = folder / "operator.yaml"
    values.write_text(FILES["operator.yaml"])
    where = [f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}", "--create-namespace"]
    helm("install", OPERATOR.name, *where, f"--values={values}", chart=OPERATOR.chart)
    until(lambda: create(requests, user="admin").status == 201, "the role admin includes captures")
    until(lambda: create(requests, storageLocation="s3://team-b").status == 403, "the policy is in force")
    assert create(requests, storageLocation="s3://team-a").status == 201


def create(
    requests: Requests,
    namespace: str = "team-a",
    *,
    user: str | None = None,
    group: str | None = None,
    name: str = "probe",
    query: str = "?dryRun=All",
    **trigger: Any,
) -> Answer:
    """Create a capture, as a dry run."""
    body = {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name},
        "spec": {"triggerCapture": {"podName": "worker-0", **trigger}},
    }
    path = f"/apis/diagon.gke.io/v1alpha1/namespaces/{namespace}/mldiagnosticsconnections{query}"
    return requests("POST", path, body, user=user, group=group)


def test_the_role_admin_and_the_group_capture_in_their_namespace_alone(requests: Requests) -> None:
    until(lambda: create(requests, user="jane", group="team-a").status == 201, "the group of the page may capture")
    assert create(requests, user="edit").forbidden_by_rbac
    assert create(requests, user="jane").forbidden_by_rbac
    for who in ({"user": "admin"}, {"user": "jane", "group": "team-a"}):
        assert create(requests, "team-b", **who).forbidden_by_rbac


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("s3://team-a/profiles", True),
        ("s3://profiles/team-a", True),
        ("volume:///team-a/slow", True),
        ("s3://profiles/team-b", False),
        ("s3://other", False),
        ("volume:///team-b", False),
    ],
)
def test_a_capture_is_stored_only_where_its_namespace_may_store(
    requests: Requests, location: str, allowed: bool
) -> None:
    answer = create(requests, user="admin", storageLocation=location)
    assert (answer.status == 201) == allowed, answer.message


def test_pods_of_another_namespace_are_not_captured(requests: Requests) -> None:
    refused = create(requests, user="admin", podNamespace="team-b")
    assert refused.status == 403
    assert "policy.crossNamespaces" in refused.message


def test_profiler_ports_are_closed_in_both_namespaces(requests: Requests) -> None:
    for namespace in ("team-a", "team-b"):
        policies = requests("GET", f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies").body["items"]
        assert [each["metadata"]["name"] for each in policies] == [f"{OPERATOR.name}-profiler-ports"]


def test_the_quota_counts_captures(requests: Requests) -> None:
    hard = requests("GET", QUOTA).body["spec"]["hard"]
    assert set(hard) == {COUNTED, "count/mldiagnosticsschedules.diagon.gke.io"}
    used = {"status": {"used": {COUNTED: hard[COUNTED]}}}
    assert requests.merge_patch(f"{QUOTA}/status", used).status == 200
    until(lambda: create(requests, name="one-more").status == 403, "the quota is used up")
    assert "exceeded quota: mldiagnostics" in create(requests, name="one-more").message
    assert requests.merge_patch(f"{QUOTA}/status", {"status": {"used": {COUNTED: "0"}}}).status == 200
    until(lambda: create(requests, name="one-more").status == 201, "captures are possible again")
