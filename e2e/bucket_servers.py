"""Servers of S3 and of Azure's blobs in the cluster, with a bucket each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster import images
from cluster.paths import E2E, REPOSITORY
from cluster.provider import Provider
from demo.kubectl import Kubectl
from forwarding import forwarded
from scene import NAMESPACE
from support.servers.object_servers import ObjectServer, azurite_at, moto_at

NAME = "buckets"
BUCKET = "e2e-buckets"
IMAGE = f"localhost/mldiagnostics/{NAME}:1"
PORTS = {"s3": 5000, "az": 10000}
SERVERS = {"s3": moto_at, "az": azurite_at}
_ADDRESS = "0.0.0.0"
_COMMANDS = {
    "s3": ["python3", "/srv/moto/server.py", _ADDRESS, str(PORTS["s3"])],
    "az": [
        *("node", "/srv/azurite/node_modules/azurite/dist/src/blob/main.js", "--blobHost", _ADDRESS),
        *("--blobPort", str(PORTS["az"]), "--inMemoryPersistence", "--skipApiVersionCheck", "--silent"),
        *("--disableTelemetry", "--disableProductStyleUrl"),
    ],
}


def variables() -> dict[str, str]:
    """Return the variables of the clients in pods."""
    here = {scheme: SERVERS[scheme](f"http://{NAME}.{NAMESPACE}.svc:{port}") for scheme, port in PORTS.items()}
    return here["s3"].environment() | here["az"].environment()


def image() -> Path:
    """Build the image of the servers, unless it is unchanged, and return its archive."""
    return images.build(E2E / "tools/buckets/Dockerfile", REPOSITORY, IMAGE)


@contextmanager
def bucket_servers(provider: Provider, kubectl: Kubectl) -> Iterator[dict[str, ObjectServer]]:
    """Run the servers in the cluster; yield them by scheme as this machine reaches them, with their empty buckets."""
    images.load(image(), provider)
    kubectl.apply(_manifests())
    try:
        kubectl("rollout", "status", f"deployment/{NAME}", f"--namespace={NAMESPACE}", "--timeout=90s", timeout_s=100)
        with forwarded(kubectl, NAMESPACE, f"deployment/{NAME}", list(PORTS.values())) as ports:
            servers = {
                scheme: SERVERS[scheme](f"http://127.0.0.1:{port}") for scheme, port in zip(PORTS, ports, strict=True)
            }
            for server in servers.values():
                server.make_bucket(BUCKET)
            yield servers
    finally:
        kubectl("delete", f"deployment/{NAME}", f"service/{NAME}", f"--namespace={NAMESPACE}", "--wait=false")


def keys(namespace: str) -> dict[str, Any]:
    """Return the Secret with the variables of the clients."""
    metadata = {"name": NAME, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": variables()}


def _manifests() -> dict[str, Any]:
    """Return Deployment and Service; the objects are lost with the pod."""
    labels = {"app": NAME}
    pod = {
        "containers": [_container(scheme) for scheme in PORTS],
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    metadata = {"name": NAME, "namespace": NAMESPACE}
    template = {"metadata": {"labels": labels}, "spec": pod}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"name": scheme, "port": port} for scheme, port in PORTS.items()]},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [deployment, service]}


def _container(scheme: str) -> dict[str, Any]:
    return {
        "name": scheme,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": _COMMANDS[scheme],
        "env": [{"name": "S3_IGNORE_SUBDOMAIN_BUCKETNAME", "value": "true"}],
        "workingDir": "/tmp",
        "readinessProbe": {"tcpSocket": {"port": PORTS[scheme]}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m", "memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
