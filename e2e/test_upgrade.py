"""Releases without a control plane are upgraded, filled and rolled back without a loss."""

from collections.abc import Iterator
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from cluster.paths import REPOSITORY
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE
from mldiagnostics_kube.certificates.trust import FIELD_MANAGER
from mldiagnostics_kube.client.apiserver import APPLY_PATCH
from release.parts import NAMESPACE, OPERATOR, PARTS, WEBHOOK
from release.render import rendered
from release_scene import KINDS, Release, wanted
from support.cluster.impersonation import Requests, until

pytestmark = pytest.mark.apiserver

RELEASES = REPOSITORY / "e2e/releases"
"""Packaged charts of version 0.1.0, before the control plane."""
CAPTURES = "/apis/diagon.gke.io/v1alpha1/namespaces/default/mldiagnosticsconnections"
PUBLICATION = f"/api/v1/namespaces/{PUBLICATION_NAMESPACE}/configmaps/{PUBLICATION_NAME}"
SECRETS = {part.name: f"/api/v1/namespaces/{NAMESPACE}/secrets/{part.name}-certificates" for part in PARTS}
FILLED = {"ca.crt": "d3JpdHRlbg=="}
CAPTURE = {
    "apiVersion": "diagon.gke.io/v1alpha1",
    "kind": "MLDiagnosticsConnection",
    "metadata": {"name": "before"},
    "spec": {"triggerCapture": {"podName": "worker-0"}},
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with apiserver(controller_manager=True) as running:
        yield running


def uids(requests: Requests) -> dict[tuple[str, str, str], str]:
    """Return the uid of every object of both releases by kind, namespace and name."""
    by_object = {}
    for kind, path in KINDS.items():
        for item in requests("GET", f"{path}?labelSelector=app.kubernetes.io/part-of=mldiagnostics").body["items"]:
            metadata = item["metadata"]
            by_object[kind, metadata.get("namespace", ""), metadata["name"]] = metadata["uid"]
    return by_object


def fill(requests: Requests, path: str, kind: str, data: dict[str, str]) -> None:
    """Write data as the replicas do."""
    body = {"apiVersion": "v1", "kind": kind, "data": data}
    answer = requests("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", body, kind=APPLY_PATCH)
    assert answer.status == 200, answer.message


def data(requests: Requests, path: str) -> Any:
    return requests("GET", path).body.get("data")


def test_an_upgrade_to_the_control_plane_loses_nothing(server: ApiServer) -> None:
    requests = Requests(server.kubeconfig)
    releases = {part.name: Release(server, part) for part in PARTS}
    for part in PARTS:
        release = releases[part.name]
        old = RELEASES / f"{part.name}-0.1.0.tgz"
        release.helm("install", "--create-namespace", "--set=replicas=4", "--set=cluster.name=mine", chart=old)
    until(lambda: requests("POST", CAPTURES, CAPTURE).status == 201, "captures can be created")
    fill(requests, SECRETS[WEBHOOK.name], "Secret", FILLED)
    before = uids(requests)
    assert requests("GET", PUBLICATION).status == 404

    for release in releases.values():
        release.helm("upgrade", "--reuse-values")
    upgraded = uids(requests)
    assert upgraded.items() >= before.items(), "an object was replaced or removed"
    for part in PARTS:
        release = releases[part.name]
        assert release.installed(requests) == wanted(rendered(part))
        deployment = requests("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{part.name}").body["spec"]
        assert deployment["replicas"] == 4
        (container,) = deployment["template"]["spec"]["containers"]
        assert {"name": "MLDIAG_CLUSTER_NAME", "value": "mine"} in container["env"]
    assert requests("GET", f"{CAPTURES}/before").status == 200
    assert data(requests, SECRETS[WEBHOOK.name]) == FILLED
    assert data(requests, SECRETS[OPERATOR.name]) is None
    assert data(requests, PUBLICATION) is None

    fill(requests, SECRETS[OPERATOR.name], "Secret", FILLED)
    fill(requests, PUBLICATION, "ConfigMap", {"url": "https://control:8443"})
    releases[OPERATOR.name].helm("upgrade", "--set=controlPlane.peer.enabled=true")
    assert uids(requests) == upgraded
    assert data(requests, SECRETS[OPERATOR.name]) == FILLED
    assert data(requests, PUBLICATION) == {"url": "https://control:8443"}

    releases[OPERATOR.name].rollback(1)
    assert uids(requests).keys() & upgraded.keys() >= before.keys()
    assert requests("GET", PUBLICATION).status == 404, "webhooks would give pods an address that nobody serves"
    assert requests("GET", f"{CAPTURES}/before").status == 200
