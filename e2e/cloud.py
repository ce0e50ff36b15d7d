"""Google Cloud Storage emulator in the cluster, reached through the API server's proxy."""

import json
import urllib.parse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from cluster import images
from cluster.archive import binary_image
from cluster.progress import ClusterError
from cluster.provider import Provider
from cluster.tools import TOOLS, tool
from demo.kubectl import Kubectl, eventually
from scene import NAMESPACE

NAME = "fake-gcs-server"
PORT = 4443
DEADLINE_S = 240
IMAGE = f"localhost/mldiagnostics/{NAME}:{TOOLS[NAME].version}"
ENDPOINT = f"http://{NAME}.{NAMESPACE}.svc:{PORT}"
"""Value of the operator's STORAGE_EMULATOR_HOST."""
PROXY = f"/api/v1/namespaces/{NAMESPACE}/services/http:{NAME}:{PORT}/proxy/storage/v1"


@dataclass(frozen=True, slots=True)
class Cloud:
    """Bucket of the emulator."""

    kubectl: Kubectl
    bucket: str

    @classmethod
    def start(cls, provider: Provider, kubectl: Kubectl, bucket: str, *, seen_from: str) -> Self:
        """Start the emulator, create the bucket, and wait until the pod `seen_from` reaches it.

        A ready pod may have no route yet: until the node knows the Service, its address leads out of the cluster.
        """
        binary = tool(NAME)
        archive = binary.with_suffix(".tar")
        if not archive.exists():
            binary_image(archive, IMAGE, binary)
        images.load(archive, provider)
        kubectl.apply(manifests())
        rollout = ("rollout", "status", f"deployment/{NAME}", f"--namespace={NAMESPACE}", f"--timeout={DEADLINE_S}s")
        kubectl(*rollout, timeout_s=DEADLINE_S + 10)
        listed = json.loads(kubectl("get", "--raw", f"{PROXY}/b?project=e2e")).get("items", [])
        if bucket not in {each["name"] for each in listed}:
            body = json.dumps({"name": bucket})
            kubectl("create", "--raw", f"{PROXY}/b?project=e2e", "--filename=-", stdin=body)
        reachable = partial(_reachable, kubectl, bucket, seen_from)
        eventually(reachable, f"connection of {seen_from} to the bucket", deadline_s=DEADLINE_S)
        return cls(kubectl, bucket)

    def names(self, prefix: str) -> list[str]:
        """Return the names of all objects below a prefix."""
        listed = json.loads(self.kubectl("get", "--raw", f"{PROXY}/b/{self.bucket}/o?prefix={prefix}/"))
        return [each["name"] for each in listed.get("items", ())]

    def download(self, prefix: str, into: Path) -> Path:
        """Copy all objects below a prefix to a local folder and return it."""
        for name in self.names(prefix):
            file = into / name
            file.parent.mkdir(parents=True, exist_ok=True)
            quoted = urllib.parse.quote(name, safe="")
            path = f"{PROXY}/b/{self.bucket}/o/{quoted}?alt=media"
            file.write_bytes(self.kubectl.binary_output("get", "--raw", path))
        return into / prefix


def _reachable(kubectl: Kubectl, bucket: str, pod: str) -> bool:
    program = f"import urllib.request as r; print(r.urlopen({f'{ENDPOINT}/storage/v1/b/{bucket}'!r}, timeout=5).read())"
    try:
        return bucket in kubectl(
            "exec", pod, f"--namespace={NAMESPACE}", "--", "/opt/training/bin/python", "-c", program
        )
    except ClusterError:
        return False


def manifests() -> dict[str, Any]:
    """Return Deployment and Service of the emulator; its data is lost with the pod."""
    labels = {"app": NAME}
    container = {
        "name": NAME,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-backend=memory", "-scheme=http", f"-port={PORT}", f"-external-url={ENDPOINT}"],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "containers": [container],
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    metadata = {"name": NAME, "namespace": NAMESPACE}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"port": PORT}]},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [deployment, service]}
