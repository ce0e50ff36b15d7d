"""What captures on the cluster are told with: the tests' namespace, objects, and small workloads beside the JobSet."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from demo.installation import EXAMPLE
from demo.kubectl import Kubectl

NAMESPACE = "e2e-capture"
RESOURCE = "mldiagnosticsconnections.diagon.gke.io"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def namespace() -> dict[str, Any]:
    """The namespace of the tests, in which only restricted pods may run."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}


def capture(name: str, **trigger: Any) -> dict[str, Any]:
    """A capture with these fields of `spec.triggerCapture`."""
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"triggerCapture": trigger},
    }


def captured_pods(finished: dict[str, Any]) -> list[str]:
    """Names of the pods that were captured, in order."""
    results = finished["status"].get("results", [])
    return sorted(result["pod"] for result in results if result["state"] == "Captured")


@contextmanager
def solo(kubectl: Kubectl, kind: str, name: str, *, replicas: int = 1) -> Iterator[None]:
    """Run the example's container without its companions, each pod for itself, as a Deployment or StatefulSet."""
    kubectl.apply(solo_workload(kind, name, replicas))
    try:
        yield
    finally:
        kubectl("delete", kind, name, f"--namespace={NAMESPACE}", "--wait=false")


def solo_workload(kind: str, name: str, replicas: int) -> dict[str, Any]:
    """The manifest of `solo`; its pods do not name their profiler port."""
    jobset = yaml.safe_load((EXAMPLE / "jobset.yaml").read_text())
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["restartPolicy"] = "Always"
    for container in pod["containers"]:
        del container["env"], container["ports"]
        container["readinessProbe"] = {"tcpSocket": {"port": 9999}, "periodSeconds": 1}
    labels = {"app": name}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}
