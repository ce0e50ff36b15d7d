"""Install, upgrade, uninstall and reinstall the webhook on a real API server."""

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from cluster.tools import tool
from demo.kubectl import Kubectl
from mldiagnostics_api.names import OPT_IN_LABEL
from release.manifests import KUSTOMIZE
from release.package import chart
from release.parts import NAMESPACE, OPERATOR, WEBHOOK, Part
from release.render import as_yaml, everything, rendered
from release_scene import Release, wanted
from support.cluster.impersonation import Requests, until

pytestmark = pytest.mark.apiserver

CONFIGURATION = f"{WEBHOOK.name}-mutating-webhook-config"
CONFIGURATION_PATH = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{CONFIGURATION}"
SECRET_PATH = f"/api/v1/namespaces/{NAMESPACE}/secrets/{WEBHOOK.name}-certificates"
BUNDLE = base64.b64encode(b"published by the webhook").decode()


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with apiserver(controller_manager=True, audited=True) as running:
        yield running


@pytest.fixture
def requests(server: ApiServer) -> Requests:
    return Requests(server.kubeconfig)


@pytest.fixture
def release(server: ApiServer) -> Iterator[Release]:
    """Release that is not installed yet; it is removed after the test."""
    ours = Release(server, WEBHOOK)
    yield ours
    ours.uninstall("--ignore-not-found")


def publish(requests: Requests) -> None:
    """Write the certificates like the webhook does, with server-side apply."""
    manager = "fieldManager=mldiagnostics-certificates&force=true"
    names = [entry["name"] for entry in requests("GET", CONFIGURATION_PATH).body["webhooks"]]
    bodies: dict[str, dict[str, Any]] = {
        CONFIGURATION_PATH: {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": CONFIGURATION},
            "webhooks": [{"name": name, "clientConfig": {"caBundle": BUNDLE}} for name in names],
        },
        SECRET_PATH: {"apiVersion": "v1", "kind": "Secret", "data": {"ca.crt": BUNDLE}},
    }
    for path, body in bodies.items():
        answer = requests("PATCH", f"{path}?{manager}", body, kind="application/apply-patch+yaml")
        assert answer.status == 200, answer.message


def published(requests: Requests) -> set[str | None]:
    """Return the different values in the Secret and in all entries of the configuration."""
    entries = requests("GET", CONFIGURATION_PATH).body["webhooks"]
    kept = requests("GET", SECRET_PATH).body.get("data", {}).get("ca.crt")
    return {kept, *(entry["clientConfig"].get("caBundle") for entry in entries)}


def deleted_by_helm(server: ApiServer) -> list[str]:
    """Return the resources of the objects that helm deleted, in order."""
    assert server.audit_log
    events = (json.loads(line) for line in server.audit_log.read_text().splitlines() if line.endswith("}"))
    requests_of_helm = [
        event for event in events if event["verb"] == "delete" and event.get("userAgent", "").startswith("Helm/")
    ]
    requests_of_helm.sort(key=lambda event: event["requestReceivedTimestamp"])
    named = (event["objectRef"] for event in requests_of_helm)
    return [target["resource"] for target in named if target["name"].startswith(WEBHOOK.name)]


def test_helm_upgrades_keep_certificates_and_uninstall_deletes_the_service_first(
    server: ApiServer, requests: Requests, release: Release, tmp_path: Path
) -> None:
    release.helm("install", "--create-namespace")
    assert release.installed(requests) == wanted(rendered(WEBHOOK))
    publish(requests)

    newer = chart(WEBHOOK, "9.9.9", "registry.example.com/ml", tmp_path)
    release.helm("upgrade", "--set=storage=gs://bucket", chart=newer)
    deployment = requests("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{WEBHOOK.name}").body
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example.com/ml/{WEBHOOK.name}:9.9.9"
    assert published(requests) == {BUNDLE}

    before = len(deleted_by_helm(server))
    release.uninstall()
    assert release.installed(requests) == set()
    deleted = deleted_by_helm(server)[before:]
    assert deleted.count("mutatingwebhookconfigurations") == 1
    assert deleted.index("services") < deleted.index("deployments"), "the API server would call a webhook without pods"

    release.helm("install")
    assert release.installed(requests) == wanted(rendered(WEBHOOK))
    assert published(requests) == {None}


def failed_open_s(server: ApiServer, pod: str) -> list[float]:
    """Return the durations in seconds of the pod's creations whose call to the webhook failed open."""
    assert server.audit_log
    events = (json.loads(line) for line in server.audit_log.read_text().splitlines() if line.endswith("}"))
    creations = (event for event in events if event["verb"] == "create" and event["objectRef"].get("name") == pod)
    failed = (each for each in creations if any(key.startswith("failed-open.") for key in each.get("annotations", {})))
    return [moment(each["stageTimestamp"]) - moment(each["requestReceivedTimestamp"]) for each in failed]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_a_pod_does_not_wait_for_a_webhook_whose_service_is_gone(
    server: ApiServer, requests: Requests, release: Release
) -> None:
    """Helm deletes Services first and the configuration last; in between, calls fail at once."""
    release.helm("install", "--create-namespace")
    timeouts = [entry["timeoutSeconds"] for entry in requests("GET", CONFIGURATION_PATH).body["webhooks"]]
    assert requests("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/{WEBHOOK.name}").status == 200
    pod = {
        "metadata": {"name": "created-meanwhile", "labels": {OPT_IN_LABEL: "true"}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }

    def without_waiting() -> bool:
        assert requests("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod).status == 201
        took = failed_open_s(server, "created-meanwhile")
        return bool(took) and took[-1] < min(timeouts) / 2

    until(without_waiting, "the API server sees that the Service is deleted")


@pytest.mark.parametrize("options", [(), ("--no-hooks",)], ids=["in two steps", "in two steps without hooks"])
def test_the_configuration_may_be_deleted_first(requests: Requests, release: Release, options: tuple[str, ...]) -> None:
    release.helm("install", "--create-namespace")
    assert requests("DELETE", CONFIGURATION_PATH).status == 200
    release.uninstall(*options)
    assert release.installed(requests) == set()


def test_the_mode_of_certificates_can_be_changed(requests: Requests, release: Release) -> None:
    release.helm("install", "--create-namespace")
    publish(requests)
    provided = ["certificates.mode=provided", "certificates.provided.secretName=mine"]
    release.helm("upgrade", *(f"--set={each}" for each in provided))
    assert release.installed(requests) == wanted(rendered(WEBHOOK, WEBHOOK.variants["provided"]))
    assert requests("GET", SECRET_PATH).status == 404
    release.helm("upgrade", "--set=certificates.mode=self", "--reset-values")
    assert release.installed(requests) == wanted(rendered(WEBHOOK))


@pytest.mark.parametrize("parts", [(OPERATOR, WEBHOOK), (WEBHOOK, OPERATOR)], ids=lambda each: each[0].folder)
def test_both_charts_can_be_installed_and_removed_in_any_order(
    server: ApiServer, requests: Requests, parts: tuple[Part, Part]
) -> None:
    first, second = (Release(server, part) for part in parts)
    for release in (first, second):
        release.helm("install", "--create-namespace", *(["--set=crds.keep=false"] if release.part is OPERATOR else []))
    for release in (first, second):
        assert release.installed(requests) == wanted(rendered(release.part))
    first.uninstall()
    assert second.installed(requests) == wanted(rendered(second.part))
    second.uninstall()
    until(lambda: not (first.installed(requests) | second.installed(requests)), "nothing is left")


def test_a_release_and_its_namespace_may_have_unusual_names(server: ApiServer, requests: Requests) -> None:
    odd = Release(server, WEBHOOK, name="1.2-rc", namespace="42")
    odd.helm("install", "--create-namespace")
    names = {item["metadata"]["name"] for item in requests("GET", "/api/v1/namespaces/42/services").body["items"]}
    odd.uninstall()
    assert names
    assert all(name.startswith(f"r1-2-rc-{WEBHOOK.name}") for name in names)


@pytest.mark.parametrize("variant", ["", "provided"])
def test_plain_yaml_and_kustomize_install_the_same_and_helm_takes_over(
    server: ApiServer, requests: Requests, release: Release, variant: str, tmp_path: Path
) -> None:
    kubectl = Kubectl(tool("kubectl"), server.kubeconfig)
    values = WEBHOOK.variants[variant]
    manifest = tmp_path / "webhook.yaml"
    manifest.write_text(as_yaml(everything(WEBHOOK, values)))

    kubectl("apply", f"--filename={manifest}")
    assert release.installed(requests) == wanted(rendered(WEBHOOK, values))
    assert kubectl("diff", f"--kustomize={KUSTOMIZE / WEBHOOK.title(variant)}") == ""
    if not variant:
        publish(requests)
        kubectl("apply", f"--filename={manifest}")
        assert published(requests) == {BUNDLE}

    release.helm("install", "--take-ownership", *(f"--set={key}={value}" for key, value in values.items()))
    assert release.installed(requests) == wanted(rendered(WEBHOOK, values))
    release.uninstall()
    assert release.installed(requests) == set()


def test_plain_yaml_is_removed_without_the_namespace(
    server: ApiServer, requests: Requests, release: Release, tmp_path: Path
) -> None:
    """As documented: the operator may use the namespace too."""
    kubectl = Kubectl(tool("kubectl"), server.kubeconfig)
    manifest = tmp_path / "webhook.yaml"
    manifest.write_text(as_yaml(everything(WEBHOOK)))
    kubectl("apply", f"--filename={manifest}")
    kubectl("delete", "mutatingwebhookconfiguration", CONFIGURATION)
    ours = f"--selector=app.kubernetes.io/instance={WEBHOOK.name}"
    kubectl("delete", f"--filename={manifest}", ours, "--ignore-not-found", "--wait=false")
    until(lambda: not release.installed(requests), "nothing is left")
    assert requests("GET", f"/api/v1/namespaces/{NAMESPACE}").body["status"]["phase"] == "Active"
