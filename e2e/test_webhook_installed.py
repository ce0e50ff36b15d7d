"""The webhook's chart on a whole cluster: it injects through upgrades, and without it every pod starts all the same."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from cluster.progress import ClusterError
from demo import injecting, installation
from demo.installation import NAMESPACE, Helm
from demo.kubectl import Kubectl, eventually
from release.parts import WEBHOOK
from release.render import setting

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhook")]

CONFIGURATION = f"{WEBHOOK.name}-mutating-webhook-config"
HERE = f"--namespace={NAMESPACE}"
DEADLINE_S = 60
DURATIONS = "apiserver_admission_webhook_admission_duration_seconds_bucket"
LE = re.compile(r'le="(2\.5|\+Inf)"')


@dataclass
class Load:
    """Pods that are created dryly one after another: how many were told of their run, and what went wrong."""

    told: int = 0
    not_told: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        return self.told + len(self.not_told) + len(self.refused)


@contextmanager
def load(kubectl: Kubectl) -> Iterator[Load]:
    """Create labelled pods in the namespace `default` during the block."""
    seen, over = Load(), threading.Event()

    def create() -> None:
        while not over.is_set():
            try:
                pod = injecting.labelled_pod(kubectl, "default")
            except ClusterError as refusal:
                seen.refused.append(str(refusal))
            else:
                if injecting.run_of(pod):
                    seen.told += 1
                else:
                    seen.not_told.append(json.dumps(pod["metadata"]))

    creating = threading.Thread(target=create)
    creating.start()
    try:
        eventually(lambda: seen.pods > 0, "pods are created", deadline_s=DEADLINE_S)
        yield seen
        so_far = seen.pods
        eventually(lambda: seen.pods > so_far + 2, "more pods are created afterwards", deadline_s=DEADLINE_S)
    finally:
        over.set()
        creating.join()


@contextmanager
def uninstalled(helm: Helm, kubectl: Kubectl, values: list[str]) -> Iterator[None]:
    """Install the webhook again after the block, and wait until it injects."""
    try:
        yield
    finally:
        installation.install(WEBHOOK, helm, values)
        injecting.until_injected(kubectl)


def uninstall(helm: Helm) -> None:
    helm("uninstall", WEBHOOK.name, HERE, "--wait", "--timeout=60s")


def slow_calls(kubectl: Kubectl) -> int:
    """Calls of a webhook that took the API server over 2.5 s, by its own histogram; a timeout takes 3 s."""
    lines = kubectl("get", "--raw=/metrics").splitlines()
    ours = [line for line in lines if line.startswith(DURATIONS) and '.injection.diagon.gke.io"' in line]
    return sum(round(float(line.split()[-1])) * (1 if 'le="+Inf"' in line else -1) for line in ours if LE.search(line))


def starts(kubectl: Kubectl, name: str) -> bool:
    """Whether a labelled pod gets a node and runs; it is created for real, and deleted."""

    def runs() -> bool:
        return bool(kubectl.get("pod", name, "--namespace=default")["status"].get("phase") == "Running")

    kubectl.apply(waiting_pod(name))
    try:
        return eventually(runs, f"the pod {name} runs", deadline_s=DEADLINE_S)
    finally:
        kubectl("delete", "pod", name, "--namespace=default", "--wait=false")


def waiting_pod(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"localhost/mldiagnostics/{WEBHOOK.name}:0.1.0",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "300"],
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    metadata = {"name": name, "namespace": "default", "labels": {injecting.OPT_IN: "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_helm_test_injects_into_a_pod_and_leaves_nothing_behind(helm: Helm, kubectl: Kubectl) -> None:
    report = helm("test", WEBHOOK.name, HERE, "--timeout=120s")
    assert "Phase:          Succeeded" in report
    left = f"--selector=app.kubernetes.io/name={WEBHOOK.name}-test"
    assert kubectl.items("pods,roles,rolebindings,serviceaccounts", "--all-namespaces", left) == []


def test_its_pods_are_restricted_and_ready(kubectl: Kubectl) -> None:
    """The API server warns of running pods that the label would forbid."""
    labelled = ("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    assert "labeled" in kubectl(*labelled, "--dry-run=server", "--overwrite", "--warnings-as-errors")
    deployment = kubectl.get("deployment", WEBHOOK.name, HERE)
    assert deployment["status"]["readyReplicas"] == 3


def test_an_upgrade_under_load_keeps_injecting(helm: Helm, kubectl: Kubectl, webhook_image: list[str]) -> None:
    before = {pod["metadata"]["uid"] for pod in kubectl.items("pods", HERE, selector())}
    with load(kubectl) as seen:
        installation.install(WEBHOOK, helm, [*webhook_image, "--set-string=podAnnotations.upgraded=yes"])
        injecting.until_replaced(kubectl)
    assert not before & uids(kubectl)
    assert (seen.refused, seen.not_told) == ([], [])


def selector() -> str:
    return f"--selector=app.kubernetes.io/name={WEBHOOK.name}"


def uids(kubectl: Kubectl) -> set[str]:
    return {pod["metadata"]["uid"] for pod in kubectl.items("pods", HERE, selector())}


def test_values_reach_the_pods(helm: Helm, kubectl: Kubectl, webhook_image: list[str]) -> None:
    told = {
        "storage": "gs://bucket/runs",
        "sinks": ["jsonl:", "otlp://collector:4317"],
        "viewUrl": "https://view.example.com",
    }
    values = [f"--set-json={setting(key, value)}" for key, value in told.items()]
    installation.install(WEBHOOK, helm, [*webhook_image, *values, "--set=cluster.name=projects/p/clusters/named"])

    def variables() -> dict[str, str] | None:
        (container,) = injecting.labelled_pod(kubectl, "default")["spec"]["containers"]
        found = {entry["name"]: entry.get("value", "") for entry in container.get("env", [])}
        return found if "MLDIAG_STORAGE" in found else None

    found = eventually(variables, "a new replica answers", deadline_s=DEADLINE_S)
    assert found["MLDIAG_STORAGE"] == "gs://bucket/runs"
    assert found["MLDIAG_SINKS"] == "jsonl:,otlp://collector:4317"
    assert found["MLDIAG_VIEW_URL"] == "https://view.example.com"
    assert json.loads(found["GKE_DIAGON_IDENTIFIER"])["clustername"] == "projects/p/clusters/named"


def test_pods_start_while_it_is_uninstalled_and_are_told_again_after_it_is_back(
    helm: Helm, kubectl: Kubectl, webhook_image: list[str]
) -> None:
    with uninstalled(helm, kubectl, webhook_image), load(kubectl) as seen:
        slow_before = slow_calls(kubectl)
        uninstall(helm)
        assert slow_calls(kubectl) == slow_before, "a pod waited for a server that was gone"
        assert not kubectl.exists("mutatingwebhookconfiguration", CONFIGURATION)
        assert starts(kubectl, "without-webhook")
    assert seen.refused == []
    assert injecting.run_of(injecting.labelled_pod(kubectl, "default"))


def test_pods_start_when_the_server_is_gone_and_when_the_rest_is_taken_away_in_two_steps(
    kubectl: Kubectl, helm: Helm, webhook_image: list[str]
) -> None:
    with uninstalled(helm, kubectl, webhook_image), load(kubectl) as seen:
        kubectl("delete", "deployment", WEBHOOK.name, HERE)
        eventually(lambda: not uids(kubectl), "no replica is left", deadline_s=DEADLINE_S)
        assert starts(kubectl, "without-server")
        kubectl("delete", "mutatingwebhookconfiguration", CONFIGURATION)
        uninstall(helm)
    assert seen.refused == []
