"""Install, upgrade, uninstall and reinstall the operator with helm, YAML and kustomize."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from cluster.tools import tool
from demo.kubectl import Kubectl
from mldiagnostics_api.manifests.definition import DEFINITIONS
from release.manifests import KUSTOMIZE, NAMESPACE_FOLDER
from release.package import chart
from release.parts import NAMESPACE, OPERATOR
from release.render import as_yaml, everything, rendered
from release_scene import Release, wanted
from support.cluster.impersonation import Requests, until

pytestmark = pytest.mark.apiserver

KEPT = {("CustomResourceDefinition", each.resource.definition_name) for each in DEFINITIONS}
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


@pytest.fixture
def release(server: ApiServer) -> Release:
    return Release(server, OPERATOR)


def capture_applies(requests: Requests) -> None:
    """Wait until the kind is served and accepts objects."""
    until(lambda: requests("POST", f"{CAPTURES}?dryRun=All", capture("first")).status == 201, "captures can be created")


def test_helm_installs_upgrades_uninstalls_and_installs_again(
    server: ApiServer, release: Release, tmp_path: Path
) -> None:
    requests = Requests(server.kubeconfig)
    release.helm("install", "--create-namespace")
    assert release.installed(requests) == wanted(rendered(OPERATOR))
    capture_applies(requests)
    assert requests("POST", CAPTURES, capture("kept")).status == 201

    newer = chart(OPERATOR, "9.9.9", "registry.example.com/ml", tmp_path)
    release.helm("upgrade", "--set=policy.maxDurationSeconds=30", chart=newer)
    deployment = requests("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{OPERATOR.name}").body
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example.com/ml/{OPERATOR.name}:9.9.9"
    too_long = capture("long", durationSeconds=31)
    until(lambda: requests("POST", f"{CAPTURES}?dryRun=All", too_long).status == 422, "the new limit holds")

    release.uninstall()
    assert release.installed(requests) == KEPT
    assert requests("GET", f"{CAPTURES}/kept").body["spec"]["triggerCapture"]["podName"] == "worker-0"
    until(
        lambda: requests("POST", f"{CAPTURES}?dryRun=All", too_long).status == 201, "the policy does not apply any more"
    )

    release.helm("install")
    assert release.installed(requests) == wanted(rendered(OPERATOR))
    assert requests("GET", f"{CAPTURES}/kept").status == 200
    assert requests("DELETE", f"{CAPTURES}/kept").status == 200, "the capture has no finalizer"
    assert requests("GET", f"{CAPTURES}/kept").status == 404


def test_uninstalling_deletes_the_definition_if_keep_is_false(server: ApiServer, release: Release) -> None:
    requests = Requests(server.kubeconfig)
    release.helm("install", "--create-namespace", "--set=crds.keep=false")
    release.uninstall()
    until(lambda: not release.installed(requests), "nothing is left")


def test_plain_yaml_and_kustomize_install_the_same_and_helm_takes_over(
    server: ApiServer, release: Release, kubectl: Kubectl, tmp_path: Path
) -> None:
    requests = Requests(server.kubeconfig)
    manifest = tmp_path / "operator.yaml"
    manifest.write_text(as_yaml(everything(OPERATOR)))

    kubectl("apply", f"--filename={manifest}")
    assert release.installed(requests) == wanted(rendered(OPERATOR))
    capture_applies(requests)
    assert kubectl("diff", f"--kustomize={NAMESPACE_FOLDER}") == ""
    assert kubectl("diff", f"--kustomize={KUSTOMIZE / OPERATOR.folder}") == ""

    release.helm("install", "--take-ownership")
    assert release.installed(requests) == wanted(rendered(OPERATOR))
    release.uninstall()
    kubectl("delete", f"--filename={manifest}", "--ignore-not-found", "--wait=false")
    until(lambda: not release.installed(requests), "nothing is left")


@pytest.mark.parametrize("way", ["yaml", "kustomize"])
def test_without_helm_the_operator_is_removed_and_captures_stay(
    server: ApiServer, release: Release, kubectl: Kubectl, way: str, tmp_path: Path
) -> None:
    """As documented: a selector keeps definitions and namespace."""
    requests = Requests(server.kubeconfig)
    manifest = tmp_path / "operator.yaml"
    manifest.write_text(as_yaml(everything(OPERATOR)))
    source = f"--filename={manifest}" if way == "yaml" else f"--kustomize={KUSTOMIZE / OPERATOR.folder}"
    if way == "kustomize":
        kubectl("apply", f"--kustomize={NAMESPACE_FOLDER}")
    kubectl("apply", source)
    capture_applies(requests)
    assert requests("POST", CAPTURES, capture("kept")).status == 201

    selector = f"app.kubernetes.io/instance={OPERATOR.name},app.kubernetes.io/component!=crds"
    kubectl("delete", source, f"--selector={selector}")
    until(lambda: release.installed(requests) == KEPT, "only the definitions are left")
    assert requests("GET", f"{CAPTURES}/kept").status == 200
    assert requests("GET", f"/api/v1/namespaces/{NAMESPACE}").body["status"]["phase"] == "Active"

    kubectl("apply", source)
    assert release.installed(requests) == wanted(rendered(OPERATOR))
    assert requests("DELETE", f"{CAPTURES}/kept").status == 200
