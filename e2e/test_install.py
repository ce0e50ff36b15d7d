"""Install, upgrade, uninstall, install again: by helm, by plain YAML, by kustomize, on a real API server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from cluster.tools import tool
from demo.kubectl import Kubectl
from release.manifests import KUSTOMIZE
from release.package import chart
from release.render import CHART, NAMESPACE, RELEASE, as_yaml, everything, helm, rendered
from support.impersonation import Requests, until

pytestmark = pytest.mark.apiserver

CAPTURES = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mldiagnosticsconnections"


def capture(name: str, **trigger: Any) -> dict[str, Any]:
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name},
        "spec": {"triggerCapture": {"podName": "worker-0", **trigger}},
    }


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with apiserver(controller_manager=True) as running:
        yield running


@pytest.fixture
def kubectl(server: ApiServer) -> Kubectl:
    return Kubectl(tool("kubectl"), server.kubeconfig)


def helm_at(server: ApiServer, verb: str, *arguments: str, chart: Path = CHART) -> str:
    where = (f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}")
    return helm(verb, RELEASE, *where, *arguments, chart=chart)


def uninstall(server: ApiServer) -> None:
    where = (f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}")
    subprocess.run([tool("helm"), "uninstall", RELEASE, *where], check=True, capture_output=True)


def capture_applies(requests: Requests) -> None:
    """The kind is served and takes objects, which can take a moment after its definition came."""
    until(lambda: requests("POST", f"{CAPTURES}?dryRun=All", capture("first")).status == 201, "captures can be created")


def installed(requests: Requests) -> set[tuple[str, str]]:
    """What an installation leaves in the cluster, by kind and name, as far as it carries the release's label."""
    kinds = {
        "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
        "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
        "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
        "NetworkPolicy": f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
        "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
        "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
        "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    }
    label = f"?labelSelector=app.kubernetes.io/instance={RELEASE}"
    return {
        (kind, item["metadata"]["name"])
        for kind, path in kinds.items()
        for item in requests("GET", path + label).body["items"]
    }


def wanted(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(item["kind"], item["metadata"]["name"]) for item in objects if item["kind"] not in ("Namespace", "Pod")}


def test_helm_installs_upgrades_uninstalls_and_installs_again(server: ApiServer, tmp_path: Path) -> None:
    requests = Requests(server.kubeconfig)
    definition = ("CustomResourceDefinition", "mldiagnosticsconnections.diagon.gke.io")

    helm_at(server, "install", "--create-namespace")
    assert installed(requests) == wanted(rendered())
    capture_applies(requests)
    assert requests("POST", CAPTURES, capture("kept")).status == 201

    newer = chart("9.9.9", "registry.example.com/ml", tmp_path)
    helm_at(server, "upgrade", "--set=policy.maxDurationSeconds=30", chart=newer)
    deployment = requests("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}").body
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example.com/ml/{RELEASE}:9.9.9"
    too_long = capture("long", durationSeconds=31)
    until(lambda: requests("POST", f"{CAPTURES}?dryRun=All", too_long).status == 422, "the new limit holds")

    uninstall(server)
    assert installed(requests) == {definition}
    assert requests("GET", f"{CAPTURES}/kept").body["spec"]["triggerCapture"]["podName"] == "worker-0"
    until(lambda: requests("POST", f"{CAPTURES}?dryRun=All", too_long).status == 201, "nobody refuses any more")

    helm_at(server, "install")
    assert installed(requests) == wanted(rendered())
    assert requests("GET", f"{CAPTURES}/kept").status == 200
    assert requests("DELETE", f"{CAPTURES}/kept").status == 200, "no finalizer holds it"
    assert requests("GET", f"{CAPTURES}/kept").status == 404


def test_uninstalling_takes_the_definition_along_if_so_told(server: ApiServer) -> None:
    requests = Requests(server.kubeconfig)
    helm_at(server, "install", "--create-namespace", "--set=crds.keep=false")
    uninstall(server)
    until(lambda: not installed(requests), "nothing is left")


def test_plain_yaml_and_kustomize_install_the_same_and_helm_takes_over(
    server: ApiServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    requests = Requests(server.kubeconfig)
    manifest = tmp_path / "operator.yaml"
    manifest.write_text(as_yaml(everything()))

    kubectl("apply", f"--filename={manifest}", f"--namespace={NAMESPACE}")
    assert installed(requests) == wanted(rendered())
    capture_applies(requests)
    assert kubectl("diff", f"--kustomize={KUSTOMIZE}") == ""

    helm_at(server, "install", "--take-ownership")
    assert installed(requests) == wanted(rendered())
    uninstall(server)
    kubectl("delete", f"--filename={manifest}", f"--namespace={NAMESPACE}", "--ignore-not-found", "--wait=false")
    until(lambda: not installed(requests), "nothing is left")
