"""Building blocks of all scenarios: the victim, hostile pods, captures, and created pods."""

import http.client
import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from cluster.progress import ClusterError
from cluster.provider import Provider
from demo import capturing, injecting
from demo.installation import NAMESPACE as OPERATORS
from demo.kubectl import Kubectl, eventually, repeating
from mldiagnostics_api.runs.names import reported_run_name
from release.parts import OPERATOR, WEBHOOK
from support.cluster.impersonation import Answer, Requests

from chaos.accounting import DENIED, INJECTED, NOT_INJECTED, SUCCEEDED, CaptureEnd, Observed
from chaos.replicas import Object, Replicas

VICTIM, ATTACKER = "chaos-victim", "chaos-attacker"
"""Namespaces of the two tenants."""
TRAINER = "trainer"
LIST = "import os, sys; print(*os.listdir(sys.argv[1]), sep='\\n')"  # the image has Python, but no ls
PROGRAMS = Path(__file__).parent / "programs"
ALL_PORTS = (9012, *range(9999, 10015))
"""The profiler ports that the default policy allows."""
CAPTURES = "/apis/diagon.gke.io/v1alpha1/namespaces/{}/mldiagnosticsconnections"
PODS = "/api/v1/namespaces/{}/pods"
RUNS = "/apis/diagon.gke.io/v1alpha1/namespaces/{}/mlruns"
ACCOUNTS = "/api/v1/namespaces/{}/serviceaccounts"
CONTROL_PLANE = "/api/v1/namespaces/kube-public/configmaps/mldiagnostics-control-plane"
PROBES_PORT = 8081
TOKEN = {"spec": {"audiences": ["mldiagnostics"], "expirationSeconds": 3600}}
NOW = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
POD_DEADLINE_S, OUTAGE_DEADLINE_S = 90, 60
PARALLEL = 16


class Stage:
    """A cluster with operator, webhook and a victim."""

    def __init__(self, provider: Provider, kubectl: Kubectl) -> None:
        self.provider = provider
        self.kubectl = kubectl
        self.operator = Replicas(kubectl, OPERATOR)
        self.webhook = Replicas(kubectl, WEBHOOK)
        self._requests = Requests(provider.kubeconfig)
        deployment = kubectl.get("deployment", OPERATOR.name, f"--namespace={OPERATORS}")
        self.image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]

    def prepare(self) -> None:
        """Create both namespaces and the victim's pod, and wait until captures and injection work."""
        programs = {path.name: path.read_text() for path in PROGRAMS.glob("*.py")}
        for namespace in (VICTIM, ATTACKER):
            self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for namespace in (VICTIM, ATTACKER, OPERATORS):
            metadata = {"name": "programs", "namespace": namespace}
            self.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": programs})
            account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
            eventually(lambda path=account: self.api("GET", path).status == 200, account, deadline_s=POD_DEADLINE_S)  # type: ignore[misc]
        self.start_victim()
        self.settle()

    def settle(self) -> None:
        """Wait until all replicas are ready, captures succeed, and pods get a run."""
        self.operator.until_ready()
        self.webhook.until_ready()
        injecting.until_injected(self.kubectl, VICTIM)
        self.operator.leader()
        end = self.end(VICTIM, self.capture(VICTIM), deadline_s=POD_DEADLINE_S)
        if end.wrong or not end.verdict:
            raise ClusterError(f"the victim's capture fails without an attack: {end.wrong or end.status}")

    def api(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request; while the API server is away, try again."""

        def poll() -> Answer | None:
            with suppress(OSError, http.client.HTTPException, ValueError):
                answer = self._requests(method, path, body)
                return answer if answer.status != HTTPStatus.SERVICE_UNAVAILABLE else None
            return None

        return eventually(poll, f"{method} {path}", deadline_s=OUTAGE_DEADLINE_S)

    def patch(self, path: str, body: Any) -> Answer:
        """Change parts of an object."""
        return self._requests.merge_patch(path, body)

    # Captures

    def capture(self, namespace: str, pod: str = TRAINER, **trigger: Any) -> str:
        """Create a capture and return its name; without a target it captures `pod`."""
        name = f"chaos-{secrets.token_hex(4)}"
        chosen = {"durationMilliseconds": 100} | ({} if "target" in trigger else {"podName": pod}) | trigger
        body = {
            "apiVersion": "diagon.gke.io/v1alpha1",
            "kind": "MLDiagnosticsConnection",
            "metadata": {"name": name},
            "spec": {"triggerCapture": {key: value for key, value in chosen.items() if value is not None}},
        }
        answer = self.api("POST", CAPTURES.format(namespace), body)
        if answer.status != 201:
            raise ClusterError(f"capture {namespace}/{name}: {answer.status}: {answer.message}")
        return name

    def end(
        self, namespace: str, name: str, *, deadline_s: float = 90, allowed: Collection[str] = SUCCEEDED
    ) -> CaptureEnd:
        """Wait for the end of a capture, not longer than the deadline."""
        started = time.monotonic()
        item: Object = {}
        while (seconds := time.monotonic() - started) < deadline_s and not capturing.finished(item):
            time.sleep(0.05)
            item = self.api("GET", f"{CAPTURES.format(namespace)}/{name}").body
        status = item.get("status", {})
        return CaptureEnd(name, seconds, status, allowed, stored=self._stored(status))

    def until(
        self, namespace: str, name: str, phase: str, *, accepted: Callable[[Object], bool] = lambda _: True
    ) -> Object:
        """Wait until a capture is in this phase, with an accepted status, and return its status."""

        def poll() -> Object | None:
            item = self.api("GET", f"{CAPTURES.format(namespace)}/{name}").body
            status: Object = item.get("status", {})
            if capturing.finished(item) and status["phase"] != phase:
                raise ClusterError(f"capture {namespace}/{name} finished before it was {phase}: {status}")
            return status if status.get("phase") == phase and accepted(status) else None

        return eventually(poll, f"{phase} of capture {namespace}/{name}", deadline_s=60, pause_s=0.1)

    def delete_captures(self, namespace: str) -> None:
        """Delete all captures of a namespace."""
        self.api("DELETE", CAPTURES.format(namespace))
        eventually(
            lambda: not self.api("GET", f"{CAPTURES.format(namespace)}?limit=1").body.get("items"),
            f"deletion of the captures of {namespace}",
            deadline_s=120,
        )

    def _stored(self, status: Object) -> bool:
        """Return False if the operator's volume lacks the trace of a capture that says it has it."""
        location = status.get("captureResult", {}).get("outputLocation", "")
        pods = [pod["metadata"]["name"] for pod in self.operator.pods()] if status.get("phase") == "Succeeded" else []
        holder = status.get("holder", "").partition("/")[0]
        if holder not in pods or not location.startswith(capturing.VOLUME):
            return True  # the volume is gone with its pod
        folder = f"{capturing.VOLUME_ROOT}/{location.removeprefix(capturing.VOLUME).strip('/')}/plugins/profile"
        return any(name.endswith(".xplane.pb") for name in self.files(holder, f"{folder}/{status['sessionId']}"))

    def files(self, holder: str, folder: str) -> list[str]:
        """Return the sorted names in a folder of a replica of the operator; the replica may just restart."""
        command = ("exec", f"--namespace={OPERATORS}", holder, "--", "python", "-c", LIST, folder)

        def poll() -> tuple[list[str]] | None:
            try:
                return (sorted(self.kubectl(*command).split()),)
            except ClusterError as error:
                return ([],) if "No such file" in str(error) else None

        return eventually(poll, f"list of {folder} in {holder}", deadline_s=OUTAGE_DEADLINE_S)[0]

    # Pods

    @contextmanager
    def pod(self, program: str, *arguments: str, namespace: str = ATTACKER, **metadata: Any) -> Iterator[str]:
        """Run a program in a pod while the block runs; yield the name of the pod."""
        name = f"chaos-{secrets.token_hex(4)}"
        self.start_pod(name, program, *arguments, namespace=namespace, **metadata)
        try:
            yield name
        finally:
            self.api("DELETE", f"{PODS.format(namespace)}/{name}", NOW)

    def start_pod(self, name: str, program: str, *arguments: str, namespace: str, **metadata: Any) -> None:
        """Create a pod that runs a program, and wait until it runs for the API server and says that it is ready.

        The kubelet reports a pod a moment after its program writes: a capture would find one that is pending.
        """
        body = pod_body(name, self.image, ["python", f"/chaos/{program}.py", *arguments], **metadata)
        self.create_pod(namespace, body)
        where = f"--namespace={namespace}"

        def ready() -> bool:
            with suppress(ClusterError):
                phase = self.kubectl("get", "pod", name, where, "--output=jsonpath={.status.phase}")
                return phase == "Running" and bool(self.kubectl("logs", name, where, "--tail=1"))
            return False

        eventually(ready, f"start of pod {namespace}/{name}", deadline_s=POD_DEADLINE_S)

    # Reports

    @contextmanager
    def clients(self, namespace: str, manner: str, accounts: int, *, run: str = "run") -> Iterator[str]:
        """Report to the control plane from a pod with the tokens of some accounts; yield the name of the pod."""
        names = [f"reporter-{number}" for number in range(accounts)]
        path, tokens = ACCOUNTS.format(namespace), [""] * accounts

        def make(number: int) -> None:
            self.api("POST", path, {"metadata": {"name": names[number]}})
            tokens[number] = self.api("POST", f"{path}/{names[number]}/token", TOKEN).body["status"]["token"]

        in_parallel(make, range(accounts))
        leader = f"{self.operator.leader()['status']['podIP']}:{PROBES_PORT}"
        url = self.api("GET", CONTROL_PLANE).body["data"]["url"]
        try:
            with self.pod("reports", manner, url, leader, run, *tokens, namespace=namespace) as pod:
                yield pod
        finally:
            self.delete_runs(namespace)

    def delete_runs(self, namespace: str) -> None:
        """Delete all runs of a namespace, some at a time: the API server answers with the deleted objects."""
        path = f"{RUNS.format(namespace)}?limit=20"

        def emptied() -> bool:
            return not self.api("DELETE", path).body.get("items")

        eventually(emptied, f"deletion of the runs of {namespace}", deadline_s=120, pause_s=0.01)

    @contextmanager
    def reporting(self, seen: Observed, manner: str = "honest", accounts: int = 1) -> Iterator[None]:
        """Let the victim report while the block runs, and note how its reports and its status do."""
        run, changed, steps = f"honest-{secrets.token_hex(4)}", [time.monotonic()], [0]
        path = f"{RUNS.format(VICTIM)}/{reported_run_name(run)}"

        def watch() -> bool:
            """Note a step that is new; return whether there was one yet."""
            answer = self.api("GET", path)
            status = answer.body.get("status", {}) if answer.status == 200 else {}
            if (step := status.get("progress", {}).get("step", 0)) != steps[-1]:
                steps.append(step)
                changed.append(time.monotonic())
            return len(steps) > 1

        with self.clients(VICTIM, manner, accounts, run=run) as pod:
            eventually(watch, "the status of the victim's run", deadline_s=POD_DEADLINE_S)
            with repeating(watch, pause_s=0.5):
                yield
            times = [*changed[1:], time.monotonic()]
            seen.frozen_s = max(after - before for before, after in itertools.pairwise(times))
            seen.note_reports(self.kubectl("logs", pod, f"--namespace={VICTIM}"))

    def create_pod(self, namespace: str, body: Object) -> None:
        """Create a pod."""
        answer = self.api("POST", PODS.format(namespace), body)
        if answer.status != 201:
            raise ClusterError(f"pod {namespace}/{body['metadata']['name']}: {answer.status}: {answer.message}")

    def running(self, namespace: str, selector: str) -> list[Object]:
        """Return the running pods with these labels."""
        pods = self.api("GET", f"{PODS.format(namespace)}?labelSelector={selector}").body["items"]
        return [pod for pod in pods if pod["status"].get("phase") == "Running"]

    def jobs(self, namespace: str, selector: str) -> list[Object]:
        """Return the Jobs with these labels."""
        items: list[Object] = self.api(
            "GET", f"/apis/batch/v1/namespaces/{namespace}/jobs?labelSelector={selector}"
        ).body["items"]
        return items

    def start_victim(self) -> None:
        """Start the victim's pod, again if it runs."""
        self.stop_victim()
        self.start_pod(TRAINER, "profiler", "9999=plain", namespace=VICTIM)

    def stop_victim(self) -> None:
        """Delete the victim's pod and wait until it is gone."""
        path = f"{PODS.format(VICTIM)}/{TRAINER}"
        self.api("DELETE", path, NOW)
        eventually(lambda: self.api("GET", path).status == 404, "end of the victim's pod", deadline_s=POD_DEADLINE_S)

    def victim(self) -> Object:
        """Return the victim's pod."""
        return self.api("GET", f"{PODS.format(VICTIM)}/{TRAINER}").body

    def profiled(self) -> Counter[str]:
        """Return how often the victim recorded each session, as its server printed."""
        lines = self.kubectl("logs", TRAINER, f"--namespace={VICTIM}").splitlines()
        return Counter(line.removeprefix("profiled ") for line in lines if line.startswith("profiled "))

    @contextmanager
    def admitting(self, seen: Observed) -> Iterator[None]:
        """Create labelled pods as dry runs while the block runs, and count how they were admitted."""

        def attempt() -> None:
            with suppress(OSError, http.client.HTTPException, ValueError):
                if verdict := admission(self._requests("POST", f"{PODS.format(VICTIM)}?dryRun=All", PROBE)):
                    seen.admissions[verdict] += 1

        with repeating(attempt, pause_s=0.1):
            yield


def admission(answer: Answer) -> str:
    """Return how a pod was admitted; empty if the API server itself could not answer."""
    if answer.status == 201:
        return INJECTED if injecting.run_of(answer.body) else NOT_INJECTED
    return DENIED if "webhook" in answer.message else ""


def pod_body(name: str, image: str, command: list[str], **metadata: Any) -> Object:
    """Return a pod that runs a command beside the programs of the suite."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "volumeMounts": [{"name": "programs", "mountPath": "/chaos"}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "programs", "configMap": {"name": "programs"}}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def parked_pod(name: str, **metadata: Any) -> Object:
    """Return a pod that is admitted but never scheduled."""
    body = pod_body(name, "none", ["none"], **metadata)
    body["spec"] |= {"schedulerName": "nobody"}
    return body


def in_parallel(work: Callable[[Any], Any], items: Iterable[Any]) -> None:
    """Call `work` with each item in several threads; raise the first error."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        for result in [pool.submit(work, item) for item in items]:
            result.result()


PROBE = parked_pod("probe", labels={injecting.OPT_IN: "true"})
