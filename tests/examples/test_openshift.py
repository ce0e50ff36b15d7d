"""The proxy before the web view on OpenShift fits the values of its page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from release.parts import OPERATOR
from release.render import rendered
from support.cluster.charts import one
from support.cluster.foreign_definitions import definitions_of
from support.cluster.impersonation import Requests, until
from support.programs.documents import blocks

if TYPE_CHECKING:
    from cluster.envtest import ApiServer

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "examples/openshift/view-proxy.yaml").read_text()
OBJECTS = {each["kind"]: each for each in yaml.safe_load_all(TEXT)}
VALUES = {
    block.title: yaml.safe_load(block.text)
    for block in blocks((ROOT / "docs/how-to/openshift.md").read_text())
    if block.title
}


PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Route": "/apis/route.openshift.io/v1/namespaces/{}/routes",
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.apiserver
def test_an_api_server_with_routes_accepts_the_objects(api_server: ApiServer, namespace: str) -> None:
    requests = Requests(api_server.kubeconfig)
    [file] = definitions_of("openshift")
    definition = yaml.safe_load(file.read_text())
    assert requests("POST", DEFINITIONS, definition).status == 201
    try:
        until(lambda: requests("GET", PATHS["Route"].format(namespace)).status == 200, "routes are served")
        for kind, body in OBJECTS.items():
            path = f"{PATHS[kind].format(namespace)}?dryRun=All&fieldValidation=Strict"
            answer = requests("POST", path, body | {"metadata": body["metadata"] | {"namespace": namespace}})
            assert answer.status == 201, answer.message
    finally:
        requests("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")


def test_the_proxy_sends_the_headers_that_the_view_expects() -> None:
    objects = rendered(OPERATOR, VALUES["openshift.yaml"] | VALUES["view.yaml"])
    view = f"{OPERATOR.name}-web-view"
    [container] = one(objects, "Deployment", view)["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value", "") for each in container["env"]}
    route, proxy = OBJECTS["Route"], OBJECTS["Deployment"]["spec"]["template"]
    [header] = route["spec"]["httpHeaders"]["actions"]["request"]
    assert header["name"] == variables["MLDIAG_VIEW_SECRET_HEADER"]
    assert not variables.get("MLDIAG_VIEW_GROUPS_HEADER")
    assert route["spec"]["host"] in variables["MLDIAG_VIEW_HOSTS"].split(",")
    port = one(objects, "Service", view)["spec"]["ports"][0]["port"]
    assert f"--upstream=http://{view}:{port}" in proxy["spec"]["containers"][0]["args"]
    [rule] = [each for each in one(objects, "NetworkPolicy", view)["spec"]["ingress"] if "from" in each]
    assert rule["from"] == [{"podSelector": {"matchLabels": proxy["metadata"]["labels"]}}]


def test_pods_have_no_ids_and_may_write_their_address() -> None:
    objects = rendered(OPERATOR, VALUES["openshift.yaml"])
    context = one(objects, "Deployment", OPERATOR.name)["spec"]["template"]["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    name = "mldiagnostics-restricted-endpoints"
    [subject] = one(objects, "RoleBinding", name)["subjects"]
    assert (
        subject["name"] == one(objects, "Deployment", OPERATOR.name)["spec"]["template"]["spec"]["serviceAccountName"]
    )
    assert one(objects, "Role", name)["metadata"]["namespace"] == subject["namespace"]
