"""A claim in the namespace of the operator over a directory of the node, for clusters without a StorageClass."""

from typing import Any

from release.parts import NAMESPACE, OPERATOR

from demo.kubectl import Kubectl

_MAKE_WRITABLE = """
import os, shutil
for each in os.scandir("/v"):
    shutil.rmtree(each.path)
os.chown("/v", 65532, 65532)
"""


def create(kubectl: Kubectl, name: str) -> None:
    """Create the claim, empty and writable for the operator, whose image must be loaded."""
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    kubectl("delete", "pod", name, "--namespace=default", "--ignore-not-found")
    for manifest in _manifests(name):
        kubectl.apply(manifest)
    finished = ("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "--namespace=default")
    kubectl(*finished, "--timeout=60s", timeout_s=70)


def _manifests(name: str) -> list[dict[str, Any]]:
    """Return a claim over an empty directory of the node, and the pod that lets the operator write there."""
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "hostPath": {"path": f"/var/tmp/mldiagnostics-{name}", "type": "DirectoryOrCreate"},
        "claimRef": {"namespace": NAMESPACE, "name": name},
    }
    wanted = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": name,
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
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": wanted,
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": pod},
    ]
