"""The webhook with its service account uses exactly the permissions that the chart grants."""

import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from mldiagnostics_api.workloads.kinds import LONE_POD, WORKLOADS, WorkloadKind
from permission_scene import Permission, kubeconfig, permissions, refused, used
from release.parts import NAMESPACE, WEBHOOK
from release.render import rendered
from release_scene import Release
from support.cluster import builders, reviews
from support.cluster.charts import environment
from support.cluster.definitions import permissive
from support.cluster.impersonation import Requests, until
from support.suite.isolation import of_programs

pytestmark = pytest.mark.apiserver

SECRET = f"{WEBHOOK.name}-certificates"
SECRET_PATH = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OF_KUBERNETES = {"apps", "batch"}
OWNERS = [workload for workload in WORKLOADS if workload is not LONE_POD and not workload.groups]
# Server-side apply needs it to create a missing object; the audit log has `patch` in both cases.
CREATE: Permission = ("create", "", "secrets", SECRET)


@contextmanager
def webhook(server: ApiServer, requests: Requests, folder: Path) -> Iterator[Path]:
    """Run the webhook with the chart's environment and a token of its service account; yield its log."""
    environ = environment(rendered(WEBHOOK), WEBHOOK) | {
        **of_programs(),
        "KUBECONFIG": str(kubeconfig(server, requests, WEBHOOK, folder / "kubeconfig")),
        "GCE_METADATA_HOST": "127.0.0.1:1",
        "POD_NAMESPACE": NAMESPACE,
        "MLDIAG_PORT": "0",
        "MLDIAG_HTTP_PORT": "0",
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "mldiagnostics_webhook"], env=environ, stdout=log)
    try:
        yield folder / "log"
    finally:
        process.terminate()
        process.wait(60)


def ports(log: Path) -> dict[str, int]:
    """Return the ports of the webhook by their names in the log."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    return {name: line[name] for line in lines for name in ("port", "http_port") if name in line}


def ready(log: Path) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports(log)['http_port']}/readyz", timeout=10):
            return True
    except (KeyError, OSError):
        return False


def serve(requests: Requests, workload: WorkloadKind) -> None:
    """Define a kind of another project and wait until it is served."""
    answer = requests("POST", DEFINITIONS, permissive(workload.api_version, workload.kind))
    assert answer.status == 201, answer.message
    path = f"/apis/{workload.api_version}/{workload.plural}"
    until(lambda: requests("GET", path).status == 200, f"{workload.plural} are served")


def review_of_unknown_owner(workload: WorkloadKind) -> dict[str, Any]:
    """Return the review of a pod whose owner does not exist."""
    owner = builders.thing("never", kind=workload.kind, api_version=workload.api_version, namespace="default")
    return reviews.review_of(reviews.pod_of(owner, namespace="default"), namespace="default")


def send(port: int, review: dict[str, Any]) -> None:
    """Send a review like the API server."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{port}/mutate/namespace"
    request = urllib.request.Request(url, reviews.encoded(review), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=trusting, timeout=30) as answer:
        assert json.load(answer)["response"]["allowed"] is True


def test_every_permission_is_used_and_none_is_missed(tmp_path: Path) -> None:
    with apiserver(controller_manager=True, audited=True) as server:
        requests = Requests(server.kubeconfig)
        for workload in OWNERS:
            if workload.group not in OF_KUBERNETES:
                serve(requests, workload)
        Release(server, WEBHOOK).helm("install", "--create-namespace")
        roles = [item for item in rendered(WEBHOOK) if item["kind"] in ("Role", "ClusterRole")]
        ours = [role for role in roles if "annotations" not in role["metadata"]]  # the others belong to `helm test`
        wanted = set(permissions(ours))
        assert CREATE in wanted

        with webhook(server, requests, tmp_path) as log:
            until(lambda: ready(log), "the webhook is ready")
            for workload in OWNERS:
                send(ports(log)["port"], review_of_unknown_owner(workload))
            send(ports(log)["port"], reviews.review_of(reviews.pod_of(None), namespace="nowhere"))
            assert requests("DELETE", SECRET_PATH).status == 200
            until(lambda: "tls.crt" in requests("GET", SECRET_PATH).body.get("data", {}), "the Secret is created again")
            with suppress(AssertionError):  # the comparison below has a better message
                until(lambda: used(server, WEBHOOK, wanted) >= wanted - {CREATE}, "every permission is used")
        assert refused(server, WEBHOOK) == []
        assert used(server, WEBHOOK, wanted) == wanted - {CREATE}
