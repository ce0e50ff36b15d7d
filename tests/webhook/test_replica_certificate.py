"""Replica with an expired mounted certificate: pods are created without it until renewal."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from cluster.tools import tool
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from demo.kubectl import Kubectl, eventually
from mldiagnostics_api.names import OPT_IN_LABEL, RUN_ANNOTATION
from mldiagnostics_kube.certificates.authority import KeyPair, Lifetimes, issue, new_authority
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.envtest import ApiServer

pytestmark = pytest.mark.apiserver

LIFETIMES = Lifetimes()
NOW = datetime.now(UTC)
DEADLINE_S = 60


def put(pair: KeyPair, folder: Path) -> None:
    """Write a certificate and its key like a mounted Secret."""
    (folder / "tls.key").write_bytes(
        pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    (folder / "tls.crt").write_bytes(pair.certificate.public_bytes(Encoding.PEM))


@contextmanager
def replica(kubeconfig: Path, certificates: Path, log: Path) -> Iterator[dict[str, int]]:
    """Run the webhook; yield its two ports by their names in the log."""
    environ = {
        **of_programs(),
        "KUBECONFIG": str(kubeconfig),
        "MLDIAG_CERTIFICATE_FOLDER": str(certificates),
        "MLDIAG_CLUSTER_NAME": "test-cluster",
        "MLDIAG_PORT": "0",
        "MLDIAG_HTTP_PORT": "0",
    }

    def ports() -> dict[str, int]:
        lines = (json.loads(line) for line in log.read_text().splitlines())
        by_name = {name: line[name] for line in lines for name in ("port", "http_port") if name in line}
        return by_name if len(by_name) == 2 else {}

    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", "mldiagnostics_webhook"], env=environ, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield eventually(ports, "the webhook listens", deadline_s=DEADLINE_S)
        finally:
            process.kill()


def configuration(name: str, port: int, authority: KeyPair) -> dict[str, Any]:
    bundle = base64.b64encode(authority.certificate.public_bytes(Encoding.PEM)).decode()
    entry = {
        "name": f"{name}.diagon.gke.io",
        "clientConfig": {"url": f"https://localhost:{port}/mutate/namespace", "caBundle": bundle},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [entry],
    }


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return True
    except urllib.error.HTTPError:
        return False


def test_pods_get_a_run_again_after_an_expired_certificate_is_renewed(api_server: ApiServer, tmp_path: Path) -> None:
    kubectl = Kubectl(tool("kubectl"), api_server.kubeconfig)
    name = f"test-{uuid4().hex[:8]}"
    authority = new_authority("test", NOW - timedelta(days=365), LIFETIMES)
    put(issue(authority, ["localhost"], NOW - timedelta(days=300), LIFETIMES), tmp_path)
    labels = {OPT_IN_LABEL: "true"}
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trainer", "namespace": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "trainer:1"}]},
    }

    def created() -> Any:
        """Return the run of a new pod; None if it has none."""
        made = kubectl("create", "--dry-run=server", "--filename=-", "--output=json", stdin=json.dumps(pod))
        return json.loads(made)["metadata"].get("annotations", {}).get(RUN_ANNOTATION)

    def failed_open() -> bool:
        """Return whether the API server counts a call to the webhook that failed open."""
        assert created() is None
        counted = f'apiserver_admission_webhook_fail_open_count{{name="{name}.diagon.gke.io"'
        return counted in kubectl("get", "--raw", "/metrics")

    with replica(api_server.kubeconfig, tmp_path, tmp_path / "log") as ports:
        kubectl.apply(configuration(name, ports["port"], authority))
        try:
            eventually(failed_open, "the API server cannot call the webhook", deadline_s=DEADLINE_S)
            assert not ready(ports["http_port"])
            put(issue(authority, ["localhost"], NOW, LIFETIMES), tmp_path)
            eventually(created, "a pod gets a run", deadline_s=DEADLINE_S)
            assert ready(ports["http_port"])
        finally:
            kubectl("delete", "mutatingwebhookconfiguration", name)
