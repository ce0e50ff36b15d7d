"""What tests of injection ask the cluster: which run a workload is, and of which run its pods were told."""

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
    """A namespace for the duration of the block."""
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}})
    try:
        yield
    finally:
        kubectl("delete", "namespace", name, "--wait=false")


def placed(manifest: Manifest, namespace: str) -> Manifest:
    """The manifest in a namespace."""
    return manifest | {"metadata": manifest["metadata"] | {"namespace": namespace}}


def parked(manifest: Any) -> Any:
    """The manifest with pods that no scheduler takes: they are admitted as any other, and cost nothing."""
    if isinstance(manifest, list):
        return [parked(each) for each in manifest]
    if not isinstance(manifest, dict):
        return manifest
    changed = {key: parked(value) for key, value in manifest.items()}
    return changed | {"schedulerName": "nobody"} if "containers" in manifest else changed


def pods_of(kubectl: Kubectl, namespace: str, workload: str, *, count: int) -> list[Object]:
    """The pods of a workload by their names, once there are so many."""

    def look() -> list[Object] | None:
        pods = kubectl.items("pods", f"--namespace={namespace}")
        named = [pod for pod in pods if f"{pod['metadata']['name']}-".startswith(f"{workload}-")]
        return named if len(named) == count else None

    return eventually(look, f"{count} pods of {namespace}/{workload}", deadline_s=PODS_DEADLINE_S)


def run_id(workload: Object, cluster: str) -> str:
    """The id of a workload's run by the SDK's formula."""
    metadata = workload["metadata"]
    return identity.run_id(
        cluster=cluster,
        namespace=metadata["namespace"],
        kind=workload["kind"],
        name=metadata["name"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
    )


def cluster_name(kubectl: Kubectl) -> str:
    """What a cluster is called that nobody named."""
    return identity.fallback_cluster_name(kubectl.get("namespace", "kube-system")["metadata"]["uid"])


def told(pod: Object) -> str | None:
    """The run of which a pod and all its containers were told; None if nothing in it speaks of a run.

    Fails if one part says something else than another.
    """
    metadata, containers = pod["metadata"], pod["spec"]["containers"]
    runs = {variables(container).get("MLDIAG_RUN_ID") for container in containers}
    assert len(runs) == 1, f"containers of {metadata['name']} were told of {runs}"
    (run,) = runs
    assert metadata.get("annotations", {}).get(RUN_ID) == run
    assert metadata.get("labels", {}).get(RUN_LABEL) == (run and run[:32])
    for container in containers:
        assert ("GKE_DIAGON_IDENTIFIER" in variables(container)) == (run is not None)
    return run


def variables(container: Object) -> dict[str, str]:
    """The variables of a container that have values of their own."""
    return {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}


def explanation(pod: Object) -> str:
    """What the webhook wrote on the pod; empty if it wrote nothing."""
    return str(pod["metadata"].get("annotations", {}).get(EXPLANATION, ""))


def dry_run(kubectl: Kubectl, manifest: Manifest) -> Object:
    """An object as it comes out of admission; it is not stored."""
    made = kubectl("create", "--dry-run=server", "--filename=-", "--output=json", stdin=json.dumps(manifest))
    admitted: Object = json.loads(made)
    return admitted
