"""Syncs of Argo CD and Flux on a real API server keep the fields that the operator and the webhook write."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cluster.envtest import ApiServer, apiserver
from cluster.paths import REPOSITORY
from cluster.tools import tool
from demo.kubectl import Kubectl
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE
from mldiagnostics_api.results import API_SERVICE
from mldiagnostics_kube.certificates.trust import FIELD_MANAGER
from mldiagnostics_kube.client.apiserver import APPLY_PATCH
from release.parts import NAMESPACE, OPERATOR, PARTS, WEBHOOK
from release.render import HOOK, Object, as_yaml, namespace_object, rendered
from support.cluster.impersonation import Requests

pytestmark = pytest.mark.apiserver

ARGO_CD = REPOSITORY / "examples/gitops/argo-cd.yaml"
MORE: dict[str, Object] = {OPERATOR.name: {"controlPlane.files.enabled": True}, WEBHOOK.name: {}}
"""Values that make every object whose fields are written in the cluster."""
WRITTEN = base64.b64encode(b"written in the cluster").decode()
CONFIGURATION = f"{WEBHOOK.name}-mutating-webhook-config"
SECRETS = [f"/api/v1/namespaces/{NAMESPACE}/secrets/{part.name}-certificates" for part in PARTS]
PUBLICATION = f"/api/v1/namespaces/{PUBLICATION_NAMESPACE}/configmaps/{PUBLICATION_NAME}"
CONFIGURATIONS = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{CONFIGURATION}"
REGISTRATION = f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}"
SYNC = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server of each test: both write the same objects."""
    with apiserver() as running:
        yield running


@pytest.fixture(scope="module")
def manifests() -> str:
    """The namespace and all objects of both charts as a GitOps tool renders them, without the hooks of `helm test`."""
    applications = [each for each in yaml.safe_load_all(ARGO_CD.read_text()) if each["kind"] == "Application"]
    values = {each["metadata"]["name"]: each["spec"]["source"]["helm"]["valuesObject"] for each in applications}
    objects = [each for part in PARTS for each in rendered(part, values[part.name] | MORE[part.name])]
    lasting = [each for each in objects if HOOK not in each["metadata"].get("annotations", {})]
    return as_yaml([namespace_object(), *lasting])


def write(requests: Requests) -> None:
    """Write all fields as the operator and the webhook do."""
    entries = [entry["name"] for entry in requests("GET", CONFIGURATIONS).body["webhooks"]]
    webhooks = [{"name": name, "clientConfig": {"caBundle": WRITTEN}} for name in entries]
    admission = "admissionregistration.k8s.io/v1"
    bodies: dict[str, Object] = {
        **{path: {"apiVersion": "v1", "kind": "Secret", "data": {"tls.crt": WRITTEN}} for path in SECRETS},
        PUBLICATION: {"apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": WRITTEN}},
        CONFIGURATIONS: {"apiVersion": admission, "kind": "MutatingWebhookConfiguration", "webhooks": webhooks},
    }
    for path, body in bodies.items():
        named = body | {"metadata": {"name": path.rpartition("/")[2]}}
        answer = requests("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", named, kind=APPLY_PATCH)
        assert answer.status == 200, answer.message
    assert requests.merge_patch(REGISTRATION, {"spec": {"caBundle": WRITTEN}}).status == 200


def written(requests: Requests) -> list[Any]:
    """Return the values of all these fields."""
    bundles = [entry["clientConfig"].get("caBundle") for entry in requests("GET", CONFIGURATIONS).body["webhooks"]]
    data = [(requests("GET", path).body.get("data") or {}) for path in (*SECRETS, PUBLICATION)]
    values = [each.get("tls.crt") or each.get("ca.crt") for each in data]
    return [*values, *bundles, requests("GET", REGISTRATION).body["spec"].get("caBundle")]


def test_a_sync_finds_no_difference_and_changes_nothing(server: ApiServer, manifests: str) -> None:
    requests, kubectl = Requests(server.kubeconfig), Kubectl(tool("kubectl"), server.kubeconfig)
    kubectl("apply", *SYNC, "--filename=-", stdin=manifests)
    assert set(written(requests)) == {None}
    write(requests)
    assert set(written(requests)) == {WRITTEN}

    assert kubectl("diff", *SYNC, "--filename=-", stdin=manifests) == ""
    kubectl("apply", *SYNC, "--filename=-", stdin=manifests)
    assert set(written(requests)) == {WRITTEN}


def test_a_replacement_empties_the_fields(server: ApiServer, manifests: str) -> None:
    """As with `Replace=true` of Argo CD, which the documentation warns of."""
    requests, kubectl = Requests(server.kubeconfig), Kubectl(tool("kubectl"), server.kubeconfig)
    kubectl("apply", *SYNC, "--filename=-", stdin=manifests)
    write(requests)
    objects = [each for each in yaml.safe_load_all(manifests) if each["kind"] in {"Secret", "ConfigMap"}]
    empty = [each for each in objects if "data" not in each]
    kubectl("replace", "--filename=-", stdin="\n---\n".join(map(json.dumps, empty)))
    assert None in written(requests)
