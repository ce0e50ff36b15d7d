"""Faults of pods, owners and the webhook: every pod is created, and carries the reason."""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import injection_workloads as make
import pytest
from cluster.progress import ClusterError
from demo.installation import NAMESPACE as OPERATORS
from demo.installation import WEBHOOK
from demo.kubectl import Kubectl, eventually
from injection_scene import OPTED_IN, Object, dry_run, explanation, injected_run, placed, temporary_namespace

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhook")]

NAMESPACE = f"e2e-injection-faults-{secrets.token_hex(2)}"
WHERE = f"--namespace={NAMESPACE}"
REPLICAS = f"--selector=app.kubernetes.io/name={WEBHOOK}"
KILL = ("--force", "--grace-period=0", "--wait=false")
RECOVERY_S = 120


@pytest.fixture(scope="module", autouse=True)
def _namespace(kubectl: Kubectl) -> Iterator[None]:
    with temporary_namespace(kubectl, NAMESPACE, OPTED_IN):
        eventually(
            lambda: kubectl.exists("serviceaccount", "default", WHERE), "the default service account", deadline_s=30
        )
        yield


@pytest.fixture(scope="module")
def job(kubectl: Kubectl) -> Object:
    """Job without pods."""
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
    """Return a pod of this namespace, with an owner if a reference is given."""
    made = placed(make.bare_pod("pod"), NAMESPACE)
    made["metadata"] |= metadata | ({"ownerReferences": [owner]} if owner else {})
    return made


def serving(kubectl: Kubectl) -> set[str]:
    """Return the ready replicas that are not being deleted."""
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
    """Return the number of reviews with a reason, by replica."""
    counts = {}
    for name in serving(kubectl):
        path = f"/api/v1/namespaces/{OPERATORS}/pods/{name}:8081/proxy/metrics"
        pattern = rf'^mldiagnostics_webhook_reviews_total{{.*reason="{reason}".*}} (.*)$'
        values = re.findall(pattern, kubectl("get", "--raw", path), re.MULTILINE)
        counts[name] = sum(map(float, values))
    return counts


def check_not_injected(kubectl: Kubectl, manifest: Object, reason: str) -> None:
    """Create the pod as a dry run until it carries the reason and a replica has counted it."""

    def poll() -> bool:
        before = counted(kubectl, reason)
        admitted = dry_run(kubectl, manifest)
        assert injected_run(admitted) is None
        if not explanation(admitted).startswith(f"{reason}: "):
            return False
        return any(count > before.get(name, 0) for name, count in counted(kubectl, reason).items())

    eventually(poll, f"reason {reason} on the pod and in the metrics", deadline_s=RECOVERY_S)


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
def test_a_faulty_pod_is_created_and_carries_the_reason(
    kubectl: Kubectl, faulty: Callable[[Kubectl], Object], reason: str
) -> None:
    check_not_injected(kubectl, faulty(kubectl), reason)


def test_a_pod_without_containers_is_rejected_by_the_api_server_only(kubectl: Kubectl, job: Object) -> None:
    empty = pod(reference(job))
    empty["spec"]["containers"] = []
    with pytest.raises(ClusterError, match=r"spec\.containers: Required value") as refused:
        dry_run(kubectl, empty)
    assert "webhook" not in str(refused.value)


def test_pods_of_a_forbidden_kind_are_created_and_carry_the_reason(kubectl: Kubectl, job: Object) -> None:
    role = kubectl.get("clusterrole", WEBHOOK)
    del role["metadata"]["resourceVersion"]
    rules = [rule for rule in role["rules"] if "jobs" not in rule["resources"]]
    assert rules != role["rules"]
    owned = pod(reference(job))
    try:
        kubectl("replace", "--filename=-", stdin=json.dumps(role | {"rules": rules}))
        kill_all(kubectl)  # existing watches outlive the permission
        eventually(lambda: not injected_run(dry_run(kubectl, owned)), "removal of the replicas", deadline_s=RECOVERY_S)
        check_not_injected(kubectl, owned, "OwnersUnknown")
    finally:
        kubectl("replace", "--filename=-", stdin=json.dumps(role))
        kill_all(kubectl)
    eventually(lambda: injected_run(dry_run(kubectl, owned)), "injection of runs", deadline_s=RECOVERY_S)


def kill_all(kubectl: Kubectl) -> None:
    kubectl("delete", "pod", REPLICAS, f"--namespace={OPERATORS}", *KILL)
