"""Namespace, captures and small workloads of the capture tests."""

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
    """Return the namespace of the tests, with Pod Security `restricted`."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}


def capture(name: str, **trigger: Any) -> dict[str, Any]:
    """Return a capture with these fields of `spec.triggerCapture`."""
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"triggerCapture": trigger},
    }


def captured_pods(finished: dict[str, Any]) -> list[str]:
    """Return the sorted names of the captured pods."""
    results = finished["status"].get("results", [])
    return sorted(result["pod"] for result in results if result["state"] == "Captured")


@contextmanager
def solo(kubectl: Kubectl, kind: str, name: str, *, pods: int = 1) -> Iterator[None]:
    """Run the example's container in independent pods of a workload of this kind."""
    kubectl.apply(solo_workload(kind, name, pods))
    try:
        yield
    finally:
        kubectl("delete", kind, name, f"--namespace={NAMESPACE}", "--wait=false")


def solo_workload(kind: str, name: str, pods: int) -> dict[str, Any]:
    """Return the manifest for `solo`; its pods do not declare a profiler port."""
    jobset = yaml.safe_load((EXAMPLE / "jobset.yaml").read_text())
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["restartPolicy"] = "Always"
    for container in pod["containers"]:
        del container["env"], container["ports"]
        container["readinessProbe"]["tcpSocket"]["port"] = 9999
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    apps = {"replicas": pods, "selector": {"matchLabels": labels}, "template": template}
    shapes: dict[str, tuple[str, dict[str, Any]]] = {
        "Deployment": ("apps/v1", apps),
        "StatefulSet": ("apps/v1", {**apps, "serviceName": name}),
        "LeaderWorkerSet": (
            "leaderworkerset.x-k8s.io/v1",
            {"replicas": 1, "leaderWorkerTemplate": {"size": pods, "workerTemplate": template}},
        ),
    }
    version, spec = shapes[kind]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
