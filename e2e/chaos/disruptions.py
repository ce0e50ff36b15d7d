"""Disruptions of the cluster, of the product's own parts, and of profiled pods."""

import base64
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster import policy_enforcer
from cluster.bare import Bare
from cluster.progress import ClusterError
from demo import capturing, injecting
from demo.capturing import RESOURCE, VOLUME_ROOT
from demo.installation import NAMESPACE as OPERATORS
from demo.installation import OPERATOR, WEBHOOK
from demo.kubectl import eventually
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import KeyPair, Lifetimes, issue, new_authority

from chaos import clock
from chaos.accounting import SUCCEEDED, Observed
from chaos.replicas import process, stopped, tiny_volume
from chaos.scenarios import Scenarios
from chaos.stage import VICTIM, Stage

DISRUPTIONS = disruption = Scenarios()

LONG_MS = 4000
"""Duration of a capture that is disturbed while it records."""
OUTAGE_S = 5.0
CRD_AWAY_S = 15.0
LEASE_S = 15.0
SECRET = f"/api/v1/namespaces/{OPERATORS}/secrets/{WEBHOOK}-certificates"
CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{WEBHOOK}-mutating-webhook-config"
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{RESOURCE}"
REPAIRED_WITHIN_S = 30


def recording(stage: Stage) -> str:
    """Start a long capture of the victim and return its name once it records."""
    name = stage.capture(VICTIM, durationMilliseconds=LONG_MS, deadlineSeconds=30)
    stage.until(VICTIM, name, "Running", accepted=capturing.is_recording)
    return name


def finish(stage: Stage, seen: Observed, name: str, allowed: frozenset[str] = SUCCEEDED) -> None:
    """Wait for the end of a capture that was disturbed."""
    seen.others.append(stage.end(VICTIM, name, allowed=allowed, deadline_s=120))


# The operator


@disruption("kill -9 of the leader during a capture", restarts=True)
def leader_killed(stage: Stage, seen: Observed) -> Iterator[None]:
    name = recording(stage)
    stage.operator.kill(stage.operator.leader())
    yield
    finish(stage, seen, name)


@disruption("kill -9 of both operator replicas during a capture", restarts=True)
def operators_killed(stage: Stage, seen: Observed) -> Iterator[None]:
    name = recording(stage)
    stage.operator.kill(*stage.operator.pods())
    yield
    finish(stage, seen, name)


@disruption("SIGSTOP of the leader for longer than its Lease, during a capture", restarts=True)
def leader_stopped(stage: Stage, seen: Observed) -> Iterator[None]:
    name, leader = recording(stage), stage.operator.leader()
    with stopped(stage.operator.pid(leader)):
        until_changed(
            lambda: stage.operator.leader()["metadata"]["uid"], "another leader", before=leader["metadata"]["uid"]
        )
    yield
    finish(stage, seen, name, SUCCEEDED | {"Interrupted"})


@disruption("the Lease is deleted during a capture", restarts=True)
def lease_deleted(stage: Stage, seen: Observed) -> Iterator[None]:
    name = recording(stage)
    stage.api("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{OPERATORS}/leases/{OPERATOR}")
    yield
    finish(stage, seen, name)


@disruption("the leader's clock steps an hour ahead and back, during captures", restarts=True)
def clock_steps(stage: Stage, seen: Observed) -> Iterator[None]:
    with clock.adjustable(stage.kubectl):
        leader = stage.operator.leader()
        for seconds in (3600, 0, -3600):
            name = recording(stage)
            clock.step(stage.kubectl, leader, seconds)
            finish(stage, seen, name)
        yield


@disruption("the CRD is deleted, and created again after 15 s", short=True, restarts=True)
def crd_replaced(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    crd = stage.api("GET", CRD).body
    stage.api("DELETE", CRD)
    eventually(lambda: stage.api("GET", CRD).status == 404, "deletion of the CRD", deadline_s=60)
    time.sleep(CRD_AWAY_S)
    fresh = {key: crd["metadata"][key] for key in ("name", "labels", "annotations") if key in crd["metadata"]}
    stage.api("POST", CRD.rpartition("/")[0], {**crd, "metadata": fresh, "status": None})
    eventually(lambda: established(stage), "the new CRD", deadline_s=60)
    yield


def established(stage: Stage) -> bool:
    conditions = stage.api("GET", CRD).body.get("status", {}).get("conditions") or ()
    return ("Established", "True") in {(each["type"], each["status"]) for each in conditions}


def with_volume(stage: Stage, seen: Observed, options: str, reasons: frozenset[str]) -> Iterator[None]:
    """Make the leader's volume small: captures name the store, and succeed again afterwards."""
    leader = stage.operator.leader()
    with tiny_volume(stage.operator.pid(leader), VOLUME_ROOT, options):
        for _ in range(2):
            finish(stage, seen, stage.capture(VICTIM, deadlineSeconds=10), reasons)
    yield


@disruption("the operator's volume is full", short=True)
def volume_full(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from with_volume(stage, seen, "size=4k", frozenset({"StoreFull"}))


@disruption("the operator's volume has no inodes left")
def volume_without_inodes(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from with_volume(stage, seen, "nr_inodes=2", frozenset({"StoreFull"}))


# The control plane


def away(stage: Stage, part: str) -> AbstractContextManager[None]:
    """Kill a part of the control plane while the block runs.

    Raises:
        ClusterError: the cluster is another provider's.
    """
    if not isinstance(stage.provider, Bare):
        raise ClusterError(f"{part}: only a bare cluster can be without it; use CLUSTER=bare")
    return stage.provider.without(part)


def outage(stage: Stage, seen: Observed, part: str) -> Iterator[None]:
    name = recording(stage)
    with away(stage, part):
        time.sleep(OUTAGE_S)
    yield
    finish(stage, seen, name)


@disruption("kill -9 of the API server during a capture; it is away for 5 s", restarts=True)
def api_server_killed(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from outage(stage, seen, "kube-apiserver")


@disruption("kill -9 of etcd during a capture; it is away for 5 s", restarts=True)
def etcd_killed(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from outage(stage, seen, "etcd")


# The webhook


def repaired(stage: Stage) -> None:
    """Wait until pods get a run again."""
    eventually(lambda: injects(stage), "injection of runs", deadline_s=REPAIRED_WITHIN_S)


def injects(stage: Stage) -> bool:
    return bool(injecting.run_of(injecting.labelled_pod(stage.kubectl, VICTIM)))


@disruption("kill -9 of one webhook replica while pods are created", restarts=True, injects=False)
def webhook_killed(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    stage.webhook.kill(stage.webhook.pods()[0])
    yield
    repaired(stage)


@disruption("kill -9 of all webhook replicas while pods are created", short=True, restarts=True, injects=False)
def webhooks_killed(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    stage.webhook.kill(*stage.webhook.pods())
    yield
    repaired(stage)


@disruption("a wrong caBundle in the webhook's configuration", short=True, injects=False)
def wrong_bundle(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    authority = new_authority("stranger", datetime.now(UTC), Lifetimes())
    bundle = base64.b64encode(pem.of_certificates([authority.certificate])).decode()
    webhooks = stage.api("GET", CONFIGURATION).body["webhooks"]
    changed = [each | {"clientConfig": each["clientConfig"] | {"caBundle": bundle}} for each in webhooks]
    stage.patch(CONFIGURATION, {"webhooks": changed})
    yield
    repaired(stage)


@disruption("the webhook's Secret is deleted")
def secret_deleted(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    before = stage.api("GET", SECRET).body["metadata"]["uid"]
    stage.api("DELETE", SECRET)
    until_changed(lambda: stage.api("GET", SECRET).body["metadata"].get("uid"), "a new Secret", before=before)
    yield
    repaired(stage)


def with_secret(stage: Stage, data: dict[str, bytes]) -> None:
    """Overwrite keys of the webhook's Secret, and wait until the replicas have repaired it."""
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    stage.patch(SECRET, {"data": encoded})
    until_changed(
        lambda: stage.api("GET", SECRET).body["data"]["tls.crt"], "a new certificate", before=encoded["tls.crt"]
    )


@disruption("the webhook's Secret is spoilt")
def secret_spoilt(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    with_secret(stage, {"tls.crt": b"spoilt", "tls.key": b"\xff\x00", "ca.crt": b""})
    yield
    repaired(stage)


@disruption("the webhook's certificate has expired", injects=False)
def certificate_expired(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    data = {key: base64.b64decode(value) for key, value in stage.api("GET", SECRET).body["data"].items()}
    (authority,) = pem.certificates(data["ca.crt"])
    signer = KeyPair(authority, pem.private_key(data["ca.key"]))
    past = datetime.now(UTC) - timedelta(days=100)
    expired = issue(signer, [f"{WEBHOOK}.{OPERATORS}.svc"], past, Lifetimes())
    with_secret(stage, {"tls.crt": pem.of_certificates([expired.certificate]), "tls.key": pem.of_key(expired.key)})
    yield
    repaired(stage)


# Profiled pods


def victim_process(stage: Stage) -> int:
    return process(stage.victim()["metadata"]["uid"], "/chaos/profiler.py")


@contextmanager
def fresh_victim(stage: Stage) -> Iterator[None]:
    """Start the victim's pod again after the block."""
    try:
        yield
    finally:
        stage.start_victim()


@disruption("SIGSTOP of the profiled process during its capture", captures=0)
def profiled_stopped(stage: Stage, seen: Observed) -> Iterator[None]:
    name = stage.capture(VICTIM, durationMilliseconds=LONG_MS, deadlineSeconds=10)
    stage.until(VICTIM, name, "Running")
    with stopped(victim_process(stage)):
        finish(stage, seen, name, frozenset({"Slow", "Silent"}))
    yield


@disruption("kill -9 of the profiled process during its capture", short=True, captures=0)
def profiled_killed(stage: Stage, seen: Observed) -> Iterator[None]:
    with fresh_victim(stage):
        name = recording(stage)
        os.kill(victim_process(stage), signal.SIGKILL)
        finish(stage, seen, name, frozenset({"ConnectionLost"}))
    yield


@disruption("the profiled pod is created again, with its name, during its capture", captures=0)
def pod_recreated(stage: Stage, seen: Observed) -> Iterator[None]:
    name = recording(stage)
    stage.start_victim()
    finish(stage, seen, name, frozenset({"ConnectionLost", "WrongPod"}))
    yield


# The network


@disruption("the charts' NetworkPolicies are enforced", short=True)
def network_policies(stage: Stage, seen: Observed) -> Iterator[None]:  # noqa: ARG001
    policies = stage.kubectl.items("networkpolicies", "--all-namespaces")
    pods = stage.kubectl.items("pods", "--all-namespaces", "--field-selector=status.phase=Running")
    with ExitStack() as rules:
        if isinstance(stage.provider, Bare):  # other networks enforce them always
            namespaces = stage.kubectl.items("namespaces")
            rules.enter_context(policy_enforcer.enforced(policies, pods, namespaces))
        yield


def until_changed(read: Callable[[], Any], what: str, *, before: Any) -> None:
    """Wait until a value is another one than before."""
    eventually(lambda: (now := read()) and now != before, what, deadline_s=3 * LEASE_S + REPAIRED_WITHIN_S)
