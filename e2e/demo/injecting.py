"""What injection looks like from outside: the run that a pod was told of, and whether the webhook is reached at all."""

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
REACHED_DEADLINE_S = 60


@dataclass(frozen=True, slots=True)
class Told:
    """What a pod of a JobSet was told: the id of its run, the rest of what it gets, and the id that is right."""

    pod: str
    run: str
    variables: tuple[str, ...]
    computed: str


def run_of(pod: dict[str, Any]) -> str:
    """The id of the run that a pod was told of; empty if it was told of none."""
    return str(pod["metadata"].get("annotations", {}).get(RUN_ID, ""))


def until_injected(kubectl: Kubectl, namespace: str = "default") -> None:
    """Wait until a labelled pod, of which nothing but a dry run is made, comes out of admission with a run.

    A webhook that is ready can still be out of reach: its authority and its Service have to come round first.

    Raises:
        ClusterError: none does within the deadline.
    """
    eventually(lambda: _injected(kubectl, namespace), "a labelled pod is injected", deadline_s=REACHED_DEADLINE_S)


def until_replaced(kubectl: Kubectl) -> None:
    """Wait until replicas of an earlier installation, which answer for some seconds after it has ended, are gone.

    Raises:
        ClusterError: they are not within the deadline.
    """
    here = f"--namespace={NAMESPACE}"

    def alone() -> bool:
        status = kubectl.get("deployment", WEBHOOK, here)["status"]
        pods = kubectl.items("pods", here, f"--selector=app.kubernetes.io/name={WEBHOOK}")
        return bool(len(pods) == status.get("updatedReplicas") == status.get("readyReplicas"))

    eventually(alone, "no replica of an earlier installation is left", deadline_s=REACHED_DEADLINE_S)


def labelled_pod(kubectl: Kubectl, namespace: str) -> dict[str, Any]:
    """A pod that asks for its run, as it comes out of admission; nothing but a dry run is made of it.

    Raises:
        ClusterError: the API server refuses it.
    """
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe-of-injection", "namespace": namespace, "labels": {OPT_IN: "true"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    made = kubectl("create", "--dry-run=server", "--output=json", "--filename=-", stdin=json.dumps(pod))
    found: dict[str, Any] = json.loads(made)
    return found


def told(kubectl: Kubectl, namespace: str, jobset: str) -> list[Told]:
    """What each pod of a JobSet was told, beside the id that the SDK's formula gives for the JobSet.

    Raises:
        ClusterError: a pod was told of no run, or of another one; the message has the webhook's own words.
    """
    workload = kubectl.get("jobset", jobset, f"--namespace={namespace}")
    pods = kubectl.items("pods", f"--namespace={namespace}", f"--selector=jobset.sigs.k8s.io/jobset-name={jobset}")
    found = [_told(pod, workload) for pod in pods]
    for pod, each in zip(pods, found, strict=True):
        if each.run != each.computed:
            said = pod["metadata"].get("annotations", {}).get(EXPLANATION, "it says nothing of a run")
            raise ClusterError(f"the pod {each.pod} does not know its run {each.computed}: {said}")
    return found


def _told(pod: dict[str, Any], workload: dict[str, Any]) -> Told:
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
    return Told(pod["metadata"]["name"], run_of(pod), ours, computed)


def _injected(kubectl: Kubectl, namespace: str) -> bool:
    try:
        return bool(run_of(labelled_pod(kubectl, namespace)))
    except ClusterError:
        return False
