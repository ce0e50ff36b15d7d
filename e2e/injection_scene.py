"""Helpers of the injection tests: the run of a workload, and the run injected into its pods."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from demo.kubectl import Kubectl, eventually
from injection_workloads import Manifest
from mldiagnostics import identity

OPT_IN = "managed-mldiagnostics-gke"
OPTED_IN = {OPT_IN: "true"}
RUN_ID = "diagon.gke.io/run-id"
RUN_LABEL = "diagon.gke.io/run"
EXPLANATION = "diagon.gke.io/injection"
PODS_DEADLINE_S = 120

Object = dict[str, Any]


@contextmanager
def temporary_namespace(kubectl: Kubectl, name: str, labels: Mapping[str, str]) -> Iterator[None]:
    """Create a namespace while the block runs."""
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}})
    try:
        yield
    finally:
        kubectl("delete", "namespace", name, "--wait=false")


def placed(manifest: Manifest, namespace: str) -> Manifest:
    """Return the manifest with a namespace."""
    return manifest | {"metadata": manifest["metadata"] | {"namespace": namespace}}


def parked(manifest: Any) -> Any:
    """Return the manifest with pods that are admitted but never scheduled."""
    if isinstance(manifest, list):
        return [parked(each) for each in manifest]
    if not isinstance(manifest, dict):
        return manifest
    changed = {key: parked(value) for key, value in manifest.items()}
    return changed | {"schedulerName": "nobody"} if "containers" in manifest else changed


def pods_of(kubectl: Kubectl, namespace: str, workload: str, *, count: int) -> list[Object]:
    """Wait until a workload has `count` pods, and return them."""

    def poll() -> list[Object] | None:
        pods = kubectl.items("pods", f"--namespace={namespace}")
        named = [pod for pod in pods if f"{pod['metadata']['name']}-".startswith(f"{workload}-")]
        return named if len(named) == count else None

    return eventually(poll, f"{count} pods of {namespace}/{workload}", deadline_s=PODS_DEADLINE_S)


def run_id(workload: Object, cluster: str) -> str:
    """Return the run id of a workload, computed by the SDK."""
    metadata = workload["metadata"]
    return identity.run_id(
        cluster=cluster,
        namespace=metadata["namespace"],
        kind=workload["kind"],
        name=metadata["name"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
    )


def cluster_name(kubectl: Kubectl) -> str:
    """Return the default name of the cluster."""
    return identity.fallback_cluster_name(kubectl.get("namespace", "kube-system")["metadata"]["uid"])


def injected_run(pod: Object) -> str | None:
    """Return the run injected into a pod, or None.

    Raises:
        AssertionError: labels, annotations and containers do not agree.
    """
    metadata, containers = pod["metadata"], pod["spec"]["containers"]
    runs = {variables(container).get("MLDIAG_RUN_ID") for container in containers}
    assert len(runs) == 1, f"containers of {metadata['name']} have different runs: {runs}"
    (run,) = runs
    assert metadata.get("annotations", {}).get(RUN_ID) == run
    assert metadata.get("labels", {}).get(RUN_LABEL) == (run and run[:32])
    for container in containers:
        assert ("GKE_DIAGON_IDENTIFIER" in variables(container)) == (run is not None)
    return run


def variables(container: Object) -> dict[str, str]:
    """Return the variables of a container that have a literal value."""
    return {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}


def explanation(pod: Object) -> str:
    """Return the reason that the webhook wrote to the pod; empty if there is none."""
    return str(pod["metadata"].get("annotations", {}).get(EXPLANATION, ""))


def dry_run(kubectl: Kubectl, manifest: Manifest) -> Object:
    """Create an object as a dry run and return it."""
    output = kubectl("create", "--dry-run=server", "--filename=-", "--output=json", stdin=json.dumps(manifest))
    admitted: Object = json.loads(output)
    return admitted
