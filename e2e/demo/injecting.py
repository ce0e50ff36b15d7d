"""Injection seen from outside: the runs of pods, and whether the API server reaches the webhook."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cluster.progress import ClusterError
from mldiagnostics import identity

from demo.installation import NAMESPACE, WEBHOOK
from demo.kubectl import Kubectl, eventually

RUN_ID = "diagon.gke.io/run-id"
EXPLANATION = "diagon.gke.io/injection"
OPT_IN = "managed-mldiagnostics-gke"
REACHED_DEADLINE_S = 240


@dataclass(frozen=True, slots=True)
class InjectedRun:
    """Run id and variables that a pod of a JobSet got, and the run id that the SDK computes."""

    pod: str
    run: str
    variables: tuple[str, ...]
    computed: str


def run_of(pod: dict[str, Any]) -> str:
    """Return the run id of a pod; empty if it has none."""
    return str(pod["metadata"].get("annotations", {}).get(RUN_ID, ""))


def until_injected(kubectl: Kubectl, namespace: str = "default") -> None:
    """Wait until the dry run of a labelled pod returns with a run.

    A webhook that is ready may not be reachable yet: the API server must first read its CA and its Service.

    Raises:
        ClusterError: no run is injected within the deadline.
    """
    eventually(
        lambda: _injected(kubectl, namespace), "injection of a run into a labelled pod", deadline_s=REACHED_DEADLINE_S
    )


def until_replaced(kubectl: Kubectl, deployment: str = WEBHOOK) -> None:
    """Wait until the replicas of an earlier installation are gone; they answer for some seconds more.

    Raises:
        ClusterError: some remain at the deadline.
    """
    here = f"--namespace={NAMESPACE}"

    def replaced() -> bool:
        status = kubectl.get("deployment", deployment, here)["status"]
        pods = kubectl.items("pods", here, f"--selector=app.kubernetes.io/name={deployment}")
        return bool(len(pods) == status.get("updatedReplicas") == status.get("readyReplicas"))

    eventually(replaced, "removal of the replicas of an earlier installation", deadline_s=REACHED_DEADLINE_S)


def labelled_pod(kubectl: Kubectl, namespace: str) -> dict[str, Any]:
    """Create a labelled pod as a dry run and return it.

    Raises:
        ClusterError: the API server rejects it.
    """
    pod = probe_pod(namespace)
    output = kubectl("create", "--dry-run=server", "--output=json", "--filename=-", stdin=json.dumps(pod))
    created: dict[str, Any] = json.loads(output)
    return created


def probe_pod(namespace: str) -> dict[str, Any]:
    """Return the manifest of a labelled pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe-of-injection", "namespace": namespace, "labels": {OPT_IN: "true"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }


def injected_runs(kubectl: Kubectl, namespace: str, jobset: str) -> list[InjectedRun]:
    """Return the run of each pod of a JobSet, with the run id that the SDK computes.

    Raises:
        ClusterError: a pod has no run or another one; the message has the webhook's reason.
    """
    workload = kubectl.get("jobset", jobset, f"--namespace={namespace}")
    pods = kubectl.items("pods", f"--namespace={namespace}", f"--selector=jobset.sigs.k8s.io/jobset-name={jobset}")
    runs = [_injected_run(pod, workload) for pod in pods]
    for pod, each in zip(pods, runs, strict=True):
        if each.run != each.computed:
            reason = (
                pod["metadata"].get("annotations", {}).get(EXPLANATION, "the pod has no annotation with the reason")
            )
            raise ClusterError(f"pod {each.pod}: has run {each.run or 'none'}, not {each.computed}: {reason}")
    return runs


def _injected_run(pod: dict[str, Any], workload: dict[str, Any]) -> InjectedRun:
    metadata = workload["metadata"]
    entries = pod["spec"]["containers"][0].get("env", [])
    identifier = next((entry["value"] for entry in entries if entry["name"] == "GKE_DIAGON_IDENTIFIER"), "{}")
    computed = identity.run_id(
        cluster=json.loads(identifier).get("clustername", "unknown"),
        namespace=metadata["namespace"],
        kind=workload["kind"],
        name=metadata["name"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
    )
    names = (entry["name"] for entry in entries)
    ours = tuple(name for name in names if name.startswith(("MLDIAG_", "GKE_DIAGON_")))
    return InjectedRun(pod["metadata"]["name"], run_of(pod), ours, computed)


def _injected(kubectl: Kubectl, namespace: str) -> bool:
    try:
        return bool(run_of(labelled_pod(kubectl, namespace)))
    except ClusterError:
        return False
