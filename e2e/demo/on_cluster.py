"""Demo on Kubernetes: install operator and webhook, train on two hosts, capture, show the result."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.durations import Expected
from cluster.progress import ClusterError, step
from release.parts import Part
from rich.console import Console

from demo import capturing, injecting, installation, show
from demo.kubectl import Kubectl, eventually

NAMESPACE = "default"
HOSTS = 2
TRAINING_DEADLINE_S = 180
CAPTURE_DEADLINE_S = 120
TRAINING = Expected("Starting the training job: a JobSet with two hosts", 20)
PODS = "--selector=jobset.sigs.k8s.io/jobset-name=training"


def run(
    console: Console,
    kubectl: Kubectl,
    helm: installation.Helm,
    parts: Sequence[tuple[Part, Sequence[str]]],
    output: Path,
) -> None:
    """Run the demo on a cluster that has the images.

    Args:
        console: Output of the demo.
        kubectl: Client of the cluster.
        helm: Client of the cluster.
        parts: Charts to install, with helm arguments.
        output: Folder for the captured files.

    Raises:
        ClusterError: a step failed; the message names it and quotes the cluster.
    """
    for part, values in parts:
        expected = installation.installing(part)
        with step(expected.title, about_s=expected.usual_s):
            installation.install(part, helm, values)
    with step("Waiting until the API server reaches the webhook"):
        injecting.until_injected(kubectl, NAMESPACE)
    with step(TRAINING.title, about_s=TRAINING.usual_s):
        pods = start_training(kubectl, NAMESPACE)
    show.runs(console, injecting.injected_runs(kubectl, NAMESPACE, "training"))
    name = f"training-{datetime.now(UTC):%H%M%S}"
    console.print(f"\nApplying a capture of {', '.join(pods)}:")
    manifest = capture_of(pods, name=name, namespace=NAMESPACE)
    console.print(manifest, style="dim", highlight=False)
    kubectl.apply(manifest)
    capture = _followed(console, kubectl, name)
    console.print("\n$ kubectl get mldc", style="bold")
    console.print(kubectl("get", "mldc", f"--namespace={NAMESPACE}"), highlight=False)
    results = capture["status"].get("results", [])
    show.hosts(console, [_host(result) for result in results])
    if capture["status"]["phase"] != "Succeeded":
        raise ClusterError(f"the capture failed: {capture['status'].get('message')}")
    with step("Copying the files from the operator's volume"):
        directory = capturing.fetch(kubectl, capture, output)
    show.reading(console, directory, capture["status"]["sessionId"])
    show.how_to_open(console, directory)
    show.recorded(console, recorded_in(kubectl, NAMESPACE, pods[0]), "python -m mldiagnostics.runs STORAGE")


def start_training(kubectl: Kubectl, namespace: str) -> list[str]:
    """Start the example's JobSet again; return the names of its pods once all of them train.

    Raises:
        ClusterError: some pods do not train within the deadline; the message quotes their logs.
    """
    where = f"--namespace={namespace}"
    kubectl("delete", "jobset", "training", where, "--ignore-not-found", "--cascade=foreground", timeout_s=90)
    kubectl("apply", where, "--filename=-", stdin=(installation.EXAMPLE / "jobset.yaml").read_text())
    try:
        return eventually(
            lambda: training_pods(kubectl, namespace),
            "training in all pods of the JobSet",
            deadline_s=TRAINING_DEADLINE_S,
        )
    except ClusterError as error:
        logs = kubectl("logs", PODS, where, "--tail=10", "--prefix")
        pods = kubectl("get", "pods", where, "--output=wide")
        raise ClusterError(f"{error}\n{pods}\n{logs}") from error


def training_pods(kubectl: Kubectl, namespace: str) -> list[str] | None:
    """Return the sorted names of the JobSet's pods if all of them have made steps."""
    pods = [
        pod["metadata"]["name"]
        for pod in kubectl.items("pods", PODS, f"--namespace={namespace}")
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    if len(pods) != HOSTS or not all(last_step(kubectl, namespace, pod) for pod in pods):
        return None
    return sorted(pods)


def last_step(kubectl: Kubectl, namespace: str, pod: str) -> int:
    """Return the number of the last step of a training pod; 0 before the first."""
    log = kubectl("logs", pod, f"--namespace={namespace}", "--tail=3")
    return max((int(number) for number in re.findall(r"^step (\d+):", log, re.MULTILINE)), default=0)


def recorded_in(kubectl: Kubectl, namespace: str, pod: str) -> str:
    """Return the run that the training pod recorded, printed by the SDK's reader in the pod.

    Raises:
        ClusterError: the pod has no run or cannot be reached.
    """
    read = ("/opt/training/bin/python", "-m", "mldiagnostics.runs", "/tmp/mldiagnostics")
    return kubectl("exec", pod, f"--namespace={namespace}", "--", *read).strip()


def capture_of(pods: list[str], *, name: str, namespace: str) -> str:
    """Return the example's capture with the names of these pods."""
    manifest = (installation.EXAMPLE / "capture.yaml").read_text()
    for pattern, line in (
        (r"^#.*\n", ""),
        (r"^  name: .*", f"  name: {name}"),
        (r"^  namespace: .*", f"  namespace: {namespace}"),
        (r"podName: .*", f"podName: {','.join(pods)}"),
        (r"podNamespace: .*", f"podNamespace: {namespace}"),
    ):
        manifest = re.sub(pattern, line, manifest, flags=re.MULTILINE)
    return manifest


def _followed(console: Console, kubectl: Kubectl, name: str) -> dict[str, Any]:
    """Print each change of a capture until it is finished."""
    capture: dict[str, Any] = {}
    for capture in capturing.follow(kubectl, NAMESPACE, name, deadline_s=CAPTURE_DEADLINE_S):
        status = capture.get("status", {})
        words = (status.get("phase", "Pending"), status.get("progress", ""), status.get("message", ""))
        console.print(f"  {datetime.now(UTC):%H:%M:%S}  " + "  ".join(word for word in words if word), highlight=False)
    return capture


def _host(result: dict[str, Any]) -> show.Host:
    started = result.get("startTime")
    return show.Host(
        name=result["pod"],
        rank=result.get("rank"),
        node=result.get("node", "-"),
        size=result.get("bytes", 0),
        start_s=datetime.fromisoformat(started).timestamp() if started else None,
        reason=result.get("reason", result.get("state", "-")),
    )
