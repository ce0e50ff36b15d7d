"""A claim for the operator on any cluster: a directory of the node."""

from typing import Any

from demo.kubectl import Kubectl
from release.parts import NAMESPACE, OPERATOR

NAME = "e2e-profiles"
_FOLDER = "/var/tmp/mldiagnostics-e2e"
"""Of the node."""
_MAKE_WRITABLE = """
import os, shutil
for each in os.scandir("/v"):
    shutil.rmtree(each.path)
os.chown("/v", 65532, 65532)
"""
_READERS = {
    "requests": {"cpu": "20m", "memory": "64Mi"},
    "limits": {"cpu": "2", "memory": "320Mi", "ephemeral-storage": "1Gi"},
}
"""Enough for the traces of the tests, on a node with two processors."""


def create(kubectl: Kubectl) -> None:
    """Create the claim, empty and writable for the operator, whose image must be loaded."""
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kubectl("delete", "pod", NAME, "--ignore-not-found")
    for manifest in _manifests():
        kubectl.apply(manifest)
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{NAME}", "--timeout=60s", timeout_s=70)


def values(claim: str) -> dict[str, Any]:
    """Return the values of an operator whose volume is the claim, and whose Jobs are small."""
    return {
        "policy.allowedStorage": {"*": ["volume:///"]},
        "volume.existingClaim": claim,
        "diagnosis.resources": _READERS,
    }


def _manifests() -> list[dict[str, Any]]:
    """Return a claim over an empty directory of the node, and the pod that lets the operator write there."""
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "hostPath": {"path": _FOLDER, "type": "DirectoryOrCreate"},
        "claimRef": {"namespace": NAMESPACE, "name": NAME},
    }
    wanted = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": NAME,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    container = {
        "name": "main",
        "image": OPERATOR.default_image,
        "command": ["python", "-c", _MAKE_WRITABLE],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "v", "hostPath": volume["hostPath"]}],
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": NAME}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": wanted,
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "namespace": "default"}, "spec": pod},
    ]
