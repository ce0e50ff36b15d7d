"""Whatever is wrong with a pod, its owners or the webhook: the pod is created, and what was not injected is told."""

import json
import re
import secrets
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import injection_workloads as make
import pytest
from cluster.progress import ClusterError
from demo.installation import NAMESPACE as OPERATORS
from demo.installation import WEBHOOK
from demo.kubectl import Kubectl, eventually
from injection_scene import OPTED_IN, Object, dry_run, explanation, placed, temporary_namespace, told

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhook")]

NAMESPACE = f"e2e-injection-faults-{secrets.token_hex(2)}"
WHERE = f"--namespace={NAMESPACE}"
REPLICAS = f"--selector=app.kubernetes.io/name={WEBHOOK}"
KILL = ("--force", "--grace-period=0", "--wait=false")
RECOVERY_S = 120


@pytest.fixture(scope="module", autouse=True)
def _namespace(kubectl: Kubectl) -> Iterator[None]:
    with temporary_namespace(kubectl, NAMESPACE, OPTED_IN):
        eventually(lambda: kubectl.exists("serviceaccount", "default", WHERE), "its service account", deadline_s=30)
        yield


@pytest.fixture(scope="module")
def job(kubectl: Kubectl) -> Object:
    """A Job that makes no pods itself."""
    return suspended_job(kubectl, "owner")


def suspended_job(kubectl: Kubectl, name: str, owner: Object | None = None) -> Object:
    manifest = placed(make.job(name), NAMESPACE)
    manifest["spec"]["suspend"] = True
    if owner:
        manifest["metadata"]["ownerReferences"] = [reference(owner)]
    kubectl.apply(manifest)
    made: Object = kubectl.get("job", name, WHERE)
    return made


def reference(owner: Object, **changes: Any) -> Object:
    of = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return of | {key: owner["metadata"][key] for key in ("name", "uid")} | changes


def pod(owner: Object | None = None, **metadata: Any) -> Object:
    """A pod of this namespace, below an owner if it is given a reference."""
    made = placed(make.bare_pod("pod"), NAMESPACE)
    made["metadata"] |= metadata | ({"ownerReferences": [owner]} if owner else {})
    return made


def serving(kubectl: Kubectl) -> set[str]:
    """The replicas that are ready and stay."""
    pods = kubectl.items("pods", REPLICAS, f"--namespace={OPERATORS}")
    return {
        pod["metadata"]["name"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        if {"type": "Ready", "status": "True"}.items() <= _condition(pod, "Ready").items()
    }


def _condition(pod: Object, kind: str) -> Object:
    return next((each for each in pod["status"].get("conditions", ()) if each["type"] == kind), {})


def counted(kubectl: Kubectl, reason: str) -> dict[str, float]:
    """How many reviews ended for a reason, by replica."""
    found = {}
    for name in serving(kubectl):
        path = f"/api/v1/namespaces/{OPERATORS}/pods/{name}:8081/proxy/metrics"
        pattern = rf'^mldiagnostics_webhook_reviews_total{{.*reason="{reason}".*}} (.*)$'
        values = re.findall(pattern, kubectl("get", "--raw", path), re.MULTILINE)
        found[name] = sum(map(float, values))
    return found


def not_told(kubectl: Kubectl, manifest: Object, reason: str) -> None:
    """Admit the pod until a replica that stays has counted that it was not told, and why."""

    def look() -> bool:
        before = counted(kubectl, reason)
        admitted = dry_run(kubectl, manifest)
        assert told(admitted) is None
        if not explanation(admitted).startswith(f"{reason}: "):
            return False
        return any(count > before.get(name, 0) for name, count in counted(kubectl, reason).items())

    eventually(look, f"a pod says and a replica counts {reason}", deadline_s=RECOVERY_S)


def orphaned(kubectl: Kubectl) -> Object:
    gone = suspended_job(kubectl, "short-lived")
    kubectl("delete", "job", "short-lived", WHERE)
    return pod(reference(gone))


def forged(kubectl: Kubectl) -> Object:
    return pod(reference(suspended_job(kubectl, "owner"), uid="00000000-0000-0000-0000-000000000000"))


def looped(kubectl: Kubectl) -> Object:
    one = suspended_job(kubectl, "one")
    two = suspended_job(kubectl, "two", one)
    suspended_job(kubectl, "one", two)
    return pod(reference(one))


def strange(kubectl: Kubectl) -> Object:
    root = kubectl.get("configmap", "kube-root-ca.crt", WHERE)
    return pod(reference(root | {"apiVersion": "v1", "kind": "ConfigMap"}), labels=OPTED_IN)


def misspelt(kubectl: Kubectl) -> Object:
    owner = reference(suspended_job(kubectl, "owner"))
    return pod(owner, annotations={"diagon.gke.io/sinks": "JSON lines, please"})


def nameless(_: Kubectl) -> Object:
    made = pod(generateName="pod-", labels=OPTED_IN)
    del made["metadata"]["name"]
    return made


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        (orphaned, "OwnerNotFound"),
        (forged, "OwnerNotFound"),
        (looped, "OwnerNotFound"),
        (strange, "KindNotSupported"),
        (misspelt, "AnnotationInvalid"),
        (nameless, "NameNotKnown"),
    ],
)
def test_a_pod_with_a_fault_is_created_and_says_why_it_was_not_told(
    kubectl: Kubectl, faulty: Callable[[Kubectl], Object], reason: str
) -> None:
    not_told(kubectl, faulty(kubectl), reason)


def test_a_pod_without_containers_is_refused_by_the_api_server_and_not_by_the_webhook(
    kubectl: Kubectl, job: Object
) -> None:
    empty = pod(reference(job))
    empty["spec"]["containers"] = []
    with pytest.raises(ClusterError, match=r"spec\.containers: Required value") as refused:
        dry_run(kubectl, empty)
    assert "webhook" not in str(refused.value)


def test_pods_are_created_while_a_replica_is_killed_and_the_others_go_on(kubectl: Kubectl, job: Object) -> None:
    wanted = kubectl.get("deployment", WEBHOOK, f"--namespace={OPERATORS}")["spec"]["replicas"]
    eventually(lambda: len(serving(kubectl)) == wanted, "all replicas serve", deadline_s=RECOVERY_S)
    victim = min(serving(kubectl))
    with admitting(kubectl, pod(reference(job))) as latest:
        kubectl("delete", "pod", victim, f"--namespace={OPERATORS}", *KILL)
        eventually(lambda: told(latest(20)[-1]), "pods are told by the others", deadline_s=RECOVERY_S)
        eventually(lambda: len(serving(kubectl)) == wanted, "another replica serves", deadline_s=RECOVERY_S)
        eventually(lambda: told(latest(1)[-1]), "pods are told by all", deadline_s=RECOVERY_S)


def test_pods_are_created_without_any_replica_and_told_again_when_they_are_back(kubectl: Kubectl, job: Object) -> None:
    with admitting(kubectl, pod(reference(job))) as latest:
        kill_all(kubectl)
        eventually(lambda: told(latest(1)[-1]) is None, "a pod is not told", deadline_s=RECOVERY_S)
        eventually(lambda: told(latest(1)[-1]), "pods are told again", deadline_s=RECOVERY_S)


def test_pods_of_a_kind_that_may_not_be_read_are_created_and_say_so(kubectl: Kubectl, job: Object) -> None:
    role = kubectl.get("clusterrole", WEBHOOK)
    del role["metadata"]["resourceVersion"]
    rules = [rule for rule in role["rules"] if "jobs" not in rule["resources"]]
    assert rules != role["rules"]
    owned = pod(reference(job))
    try:
        kubectl("replace", "--filename=-", stdin=json.dumps(role | {"rules": rules}))
        kill_all(kubectl)  # watches that stand outlive the permission
        eventually(lambda: not told(dry_run(kubectl, owned)), "the replicas are gone", deadline_s=RECOVERY_S)
        not_told(kubectl, owned, "OwnersUnknown")
    finally:
        kubectl("replace", "--filename=-", stdin=json.dumps(role))
        kill_all(kubectl)
    eventually(lambda: told(dry_run(kubectl, owned)), "pods are told again", deadline_s=RECOVERY_S)


def kill_all(kubectl: Kubectl) -> None:
    kubectl("delete", "pod", REPLICAS, f"--namespace={OPERATORS}", *KILL)


@contextmanager
def admitting(kubectl: Kubectl, manifest: Object) -> Iterator[Callable[[int], list[Object]]]:
    """Create a pod over and over, as dry runs, while the block runs; none may be denied.

    Gives a function that returns pods of the given number of attempts that begin after its call.
    """
    with _proxy(kubectl) as url, ThreadPoolExecutor(max_workers=1) as background:
        create = f"{url}/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
        admitted: list[Object] = []
        over = threading.Event()

        def attempts() -> None:
            while not over.is_set():
                admitted.append(_post(create, manifest))

        running = background.submit(attempts)

        def latest(count: int) -> list[Object]:
            begun = len(admitted) + 1  # one may be under way
            eventually(lambda: len(admitted) >= begun + count or running.done(), "pods are admitted", deadline_s=60)
            if running.done():
                running.result()
            return admitted[begun : begun + count]

        try:
            yield latest
        finally:
            over.set()
        running.result()


def _post(url: str, manifest: Object) -> Object:
    request = urllib.request.Request(
        url, json.dumps(manifest).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        created: Object = json.load(answer)
    return created


@contextmanager
def _proxy(kubectl: Kubectl) -> Iterator[str]:
    """The API server without its authentication, for as long as the block runs."""
    command = [str(kubectl.binary), f"--kubeconfig={kubectl.kubeconfig}", "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            assert proxy.stdout
            yield f"http://{proxy.stdout.readline().split()[-1]}"
        finally:
            proxy.kill()
