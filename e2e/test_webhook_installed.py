"""Installed webhook on a cluster: it injects during upgrades, and pods start without it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import pytest
from demo import injecting, installation
from demo.installation import NAMESPACE, Helm
from demo.kubectl import Kubectl, eventually, repeating
from release.parts import WEBHOOK
from release.render import setting
from support.cluster.impersonation import Requests

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhook")]

CONFIGURATION = f"{WEBHOOK.name}-mutating-webhook-config"
HERE = f"--namespace={NAMESPACE}"
DEADLINE_S = 240
LOAD_PAUSE_S = 0.05
DURATIONS = "apiserver_admission_webhook_admission_duration_seconds_bucket"
LE = re.compile(r'le="(2\.5|\+Inf)"')


@dataclass
class Load:
    """Results of dry runs of pods: with a run, without one, and rejected."""

    injected: int = 0
    not_injected: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        """Number of attempts."""
        return self.injected + len(self.not_injected) + len(self.refused)


@contextmanager
def load(kubectl: Kubectl) -> Iterator[Load]:
    """Create labelled pods in the namespace `default` during the block, as dry runs."""
    results, requests, pod = Load(), Requests(kubectl.kubeconfig), injecting.probe_pod("default")

    def create() -> None:
        answer = requests("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
        if answer.status != HTTPStatus.CREATED:
            results.refused.append(answer.message)
        elif injecting.run_of(answer.body):
            results.injected += 1
        else:
            results.not_injected.append(json.dumps(answer.body["metadata"]))

    with repeating(create, pause_s=LOAD_PAUSE_S):
        eventually(lambda: results.pods > 0, "creation of pods", deadline_s=DEADLINE_S)
        yield results
        so_far = results.pods
        eventually(lambda: results.pods > so_far + 2, "creation of more pods", deadline_s=DEADLINE_S)


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
    """Return the number of webhook calls over 2.5 s in the API server's histogram; a timeout takes 3 s."""
    lines = kubectl("get", "--raw=/metrics").splitlines()
    ours = [line for line in lines if line.startswith(DURATIONS) and '.injection.diagon.gke.io"' in line]
    return sum(round(float(line.split()[-1])) * (1 if 'le="+Inf"' in line else -1) for line in ours if LE.search(line))


def starts(kubectl: Kubectl, name: str) -> bool:
    """Create a labelled pod, return whether it runs, and delete it."""

    def runs() -> bool:
        return bool(kubectl.get("pod", name, "--namespace=default")["status"].get("phase") == "Running")

    kubectl.apply(waiting_pod(name))
    try:
        return eventually(runs, f"start of pod {name}", deadline_s=DEADLINE_S)
    finally:
        kubectl("delete", "pod", name, "--namespace=default", "--wait=false")


def waiting_pod(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": WEBHOOK.default_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", "import time; time.sleep(300)"],  # the image has no sleep
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    metadata = {"name": name, "namespace": "default", "labels": {injecting.OPT_IN: "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_helm_test_succeeds_and_removes_its_objects(helm: Helm, kubectl: Kubectl) -> None:
    report = helm("test", WEBHOOK.name, HERE, "--timeout=120s")
    assert "Phase:          Succeeded" in report
    left = f"--selector=app.kubernetes.io/name={WEBHOOK.name}-test"
    for kind in ("pods", "roles", "rolebindings", "serviceaccounts"):
        assert kubectl.items(kind, "--all-namespaces", left) == []


def test_the_pods_of_the_webhook_are_restricted_and_ready(kubectl: Kubectl) -> None:
    """The API server warns about running pods that the label would forbid."""
    labelled = ("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    assert "labeled" in kubectl(*labelled, "--dry-run=server", "--overwrite", "--warnings-as-errors")
    deployment = kubectl.get("deployment", WEBHOOK.name, HERE)
    assert deployment["status"]["readyReplicas"] == 3


def test_an_upgrade_under_load_keeps_injecting_and_its_values_reach_the_pods(
    helm: Helm, kubectl: Kubectl, webhook_image: list[str]
) -> None:
    settings = {
        "storage": "gs://bucket/runs",
        "sinks": ["jsonl:", "otlp://collector:4317"],
        "viewUrl": "https://view.example.com",
    }
    values = [f"--set-json={setting(key, value)}" for key, value in settings.items()]
    before = uids(kubectl)
    with load(kubectl) as results:
        installation.install(WEBHOOK, helm, [*webhook_image, *values, "--set=cluster.name=projects/p/clusters/named"])
        injecting.until_replaced(kubectl)
    assert not before & uids(kubectl)
    assert (results.refused, results.not_injected) == ([], [])
    (container,) = injecting.labelled_pod(kubectl, "default")["spec"]["containers"]
    env = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    assert env["MLDIAG_STORAGE"] == "gs://bucket/runs"
    assert env["MLDIAG_SINKS"] == "jsonl:,otlp://collector:4317"
    assert env["MLDIAG_VIEW_URL"] == "https://view.example.com"
    assert json.loads(env["GKE_DIAGON_IDENTIFIER"])["clustername"] == "projects/p/clusters/named"


def selector() -> str:
    return f"--selector=app.kubernetes.io/name={WEBHOOK.name}"


def uids(kubectl: Kubectl) -> set[str]:
    return {pod["metadata"]["uid"] for pod in kubectl.items("pods", HERE, selector())}


def test_pods_start_while_it_is_uninstalled_and_get_runs_after_reinstallation(
    helm: Helm, kubectl: Kubectl, webhook_image: list[str]
) -> None:
    with uninstalled(helm, kubectl, webhook_image), load(kubectl) as results:
        slow_before = slow_calls(kubectl)
        uninstall(helm)
        assert slow_calls(kubectl) == slow_before, "a pod waited for a deleted server"
        assert not kubectl.exists("mutatingwebhookconfiguration", CONFIGURATION)
        assert starts(kubectl, "without-webhook")
    assert results.refused == []
    assert injecting.run_of(injecting.labelled_pod(kubectl, "default"))


def test_pods_start_without_the_server_and_during_a_removal_in_two_steps(
    kubectl: Kubectl, helm: Helm, webhook_image: list[str]
) -> None:
    with uninstalled(helm, kubectl, webhook_image), load(kubectl) as results:
        kubectl("delete", "deployment", WEBHOOK.name, HERE)
        eventually(lambda: not uids(kubectl), "removal of all replicas", deadline_s=DEADLINE_S)
        assert starts(kubectl, "without-server")
        kubectl("delete", "mutatingwebhookconfiguration", CONFIGURATION)
        uninstall(helm)
    assert results.refused == []
