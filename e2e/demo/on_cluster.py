"""Demo on Kubernetes: install operator and webhook, train on two hosts, capture, show the result."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml
from cluster.durations import Expected
from cluster.progress import ClusterError, step
from release.parts import OPERATOR, Part
from rich.console import Console

from demo import following, injecting, installation, node_claim, show
from demo.command_line import mldiag, shown
from demo.kubectl import Kubectl, eventually

NAMESPACE = "default"
HOSTS = 2
SLOW = {"SLOW_INPUT_PROCESS": 1, "SLOW_INPUT_SECONDS": 0.1}
"""One host reads its input slowly, so that the capture has a verdict."""
SCHEDULE = "automatic"
"""It captures the job in its first slot, a minute later."""
CLAIM = "demo-profiles"
TRAINING_DEADLINE_S = 180
SESSION_DEADLINE_S = 60
"""A capture is in the status of its run within seconds."""
RETRY_S = 1
TRAINING = Expected("Starting the training job: a JobSet with two hosts", 10)
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
            own = installation.settings(_volume(kubectl)) if part is OPERATOR else []
            installation.install(part, helm, [*values, *own])
    with step("Waiting until the API server reaches the webhook"):
        injecting.until_injected(kubectl, NAMESPACE)
        following.until_published(kubectl, NAMESPACE)
    commands = _Commands(console, kubectl)
    kubectl("delete", "mlds", SCHEDULE, f"--namespace={NAMESPACE}", "--ignore-not-found")  # of an earlier demo
    commands.run("schedules", "create", SCHEDULE, "--every=1m", "--workload=jobset/training", "--max-per-day=1")
    with step(TRAINING.title, about_s=TRAINING.usual_s):
        start_training(kubectl, NAMESPACE, **SLOW)
    injected = injecting.injected_runs(kubectl, NAMESPACE, "training")
    show.runs(console, injected)
    with step("Waiting until both hosts report to the control plane"):
        mlrun = following.until_reported(kubectl, NAMESPACE, injected[0].run, HOSTS)
    commands.run("runs", "list")
    session = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    commands.run("capture", "jobset/training", "--duration", "2s", "--session", session, "--wait", with_remarks=True)
    commands.run("profiles", "download", f"{mlrun}/{session}", "--to", str(output), deadline_s=SESSION_DEADLINE_S)
    show.reading(console, output, session)
    show.how_to_open(console, output)
    with step("Waiting until the operator has accounted the time of the run"):
        following.until_accounted(kubectl, NAMESPACE, injected[0].run)
    commands.run("goodput", mlrun)
    commands.run("runs", "get", mlrun, "--hosts")
    with step("Waiting for the slot of the schedule, and for its diagnosis"):
        following.until_captured(kubectl, NAMESPACE, SCHEDULE)
    commands.run("schedules", "get", SCHEDULE)
    show.command(console, "kubectl get mldc", kubectl("get", "mldc", f"--namespace={NAMESPACE}"))
    show.command(console, f"kubectl events --for mlrun/{mlrun}", following.story(kubectl, NAMESPACE, mlrun))


def _volume(kubectl: Kubectl) -> dict[str, object]:
    """Return the values of an operator whose Jobs can read its traces: they are on a claim."""
    default = "storageclass.kubernetes.io/is-default-class"
    classes = kubectl.items("storageclasses")
    if any(each["metadata"].get("annotations", {}).get(default) == "true" for each in classes):
        return {"volume.claim.enabled": True, "volume.claim.size": "1Gi", "volume.claim.accessModes": ["ReadWriteOnce"]}
    if not kubectl.exists("persistentvolumeclaim", CLAIM, f"--namespace={installation.NAMESPACE}"):
        node_claim.create(kubectl, CLAIM)
    return {"volume.existingClaim": CLAIM, "replicas": 1}


class _Commands:
    """Runs commands of `mldiag` on the cluster and prints them with their output."""

    def __init__(self, console: Console, kubectl: Kubectl) -> None:
        self._console, self._env = console, {"KUBECONFIG": str(kubectl.kubeconfig)}

    def run(self, *arguments: str, with_remarks: bool = False, deadline_s: float = 0) -> None:
        """Run one command, again until the deadline if it fails. Raises `ClusterError` with its message."""
        command = [*arguments, f"--namespace={NAMESPACE}"]
        end = time.monotonic() + deadline_s
        while True:
            try:
                output = mldiag(command, self._env, with_remarks=with_remarks)
            except ClusterError:
                if time.monotonic() > end:
                    raise
                time.sleep(RETRY_S)
            else:
                show.command(self._console, shown(command), output)
                return


def start_training(kubectl: Kubectl, namespace: str, **env: object) -> list[str]:
    """Start the example's JobSet again; return the names of its pods once all of them train.

    Args:
        kubectl: Client of the cluster.
        namespace: Namespace of the JobSet.
        env: Variables of the example, see its `train.py`.

    Raises:
        ClusterError: some pods do not train within the deadline; the message quotes their logs.
    """
    where = f"--namespace={namespace}"
    kubectl("delete", "jobset", "training", where, "--ignore-not-found", "--cascade=foreground", timeout_s=90)
    kubectl("apply", where, "--filename=-", stdin=_jobset(env))
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


def _jobset(env: Mapping[str, object]) -> str:
    jobset = yaml.safe_load((installation.EXAMPLE / "jobset.yaml").read_text())
    (container,) = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    container["env"] += [{"name": name, "value": str(value)} for name, value in env.items()]
    return json.dumps(jobset)


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
