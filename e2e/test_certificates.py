"""Changes of `certificates.mode` on a cluster: pods are created, and get a run again."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from cluster import addons
from cluster.provider import Provider
from demo import injecting, installation
from demo.installation import NAMESPACE, WEBHOOK
from demo.kubectl import Kubectl, eventually, repeating
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import Lifetimes, issue, new_authority
from release import parts

pytestmark = pytest.mark.cluster

CERT_MANAGER = "cert-manager"
HERE = f"--namespace={NAMESPACE}"
CONFIGURATION = f"{WEBHOOK}-mutating-webhook-config"
DEADLINE_S = 180


@pytest.fixture
def modes(running_cluster: Provider, kubectl: Kubectl, helm: installation.Helm, webhook_image: list[str]) -> "Modes":
    """One replica with a self-managed certificate, and cert-manager."""
    addons.install(CERT_MANAGER, running_cluster)
    made = Modes(kubectl, helm, [*webhook_image, "--set=replicas=1"])
    made.change()
    return made


class Modes:
    """Installation whose mode changes while pods are created."""

    def __init__(self, kubectl: Kubectl, helm: installation.Helm, values: list[str]) -> None:
        self.kubectl = kubectl
        self._helm = helm
        self._values = values

    def change(self, *values: str, meanwhile: Callable[[], None] | None = None) -> None:
        """Change the mode, and wait until only the new replica injects runs."""
        set_values = [*self._values, *(f"--set={value}" for value in values)]
        self._helm(
            "upgrade",
            "--install",
            WEBHOOK,
            str(parts.WEBHOOK.chart),
            HERE,
            "--create-namespace",
            "--reset-values",
            *set_values,
        )
        if meanwhile:
            meanwhile()
        eventually(self._replaced, "replacement of the replica", deadline_s=DEADLINE_S)
        eventually(self.injects, "injection of a run", deadline_s=DEADLINE_S)

    def bundles(self) -> set[bytes]:
        """Return the different caBundles of all entries."""
        entries = self.kubectl.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
        return {base64.b64decode(entry["clientConfig"].get("caBundle", "")) for entry in entries}

    def replicas(self) -> int:
        """Return the number of pods of the webhook."""
        return len(self.kubectl.items("pods", HERE, f"--selector=app.kubernetes.io/name={WEBHOOK}"))

    def injects(self) -> bool:
        """Return whether a pod that is created now gets a run; raise if it is rejected."""
        return bool(injecting.run_of(injecting.labelled_pod(self.kubectl, "default")))

    @contextmanager
    def admitting(self) -> Iterator[None]:
        """Create pods as dry runs while the block runs; none may be rejected."""
        with repeating(self.injects):
            yield

    def _replaced(self) -> bool:
        status = self.kubectl.get("deployment", WEBHOOK, HERE)["status"]
        return bool(self.replicas() == status.get("updatedReplicas") == status.get("readyReplicas") == 1)


def test_modes_are_changed_while_pods_are_created(modes: Modes, kubectl: Kubectl) -> None:
    """With cert-manager, the new replica is ready when it has a certificate; until then the old one serves."""
    kubectl("delete", "secret", f"{WEBHOOK}-tls", f"{WEBHOOK}-ca", HERE, "--ignore-not-found")
    published = modes.bundles()

    def wait_without_cert_manager() -> None:
        eventually(lambda: modes.replicas() == 2, "a second replica", deadline_s=DEADLINE_S)
        assert modes.bundles() == published
        assert modes.injects()
        assert modes.replicas() == 2
        scale(kubectl, 1)

    with modes.admitting():
        scale(kubectl, 0)
        try:
            modes.change(f"certificates.mode={CERT_MANAGER}", meanwhile=wait_without_cert_manager)
        finally:
            scale(kubectl, 1)
        assert published.isdisjoint(modes.bundles())

        authority = provide(kubectl)
        provided = ("certificates.mode=provided", "certificates.provided.secretName=provided")
        modes.change(*provided, f"certificates.provided.caBundle={authority}")
        assert modes.bundles() == {authority.encode()}

        modes.change()
        own = kubectl.get("secret", f"{WEBHOOK}-certificates", HERE)["data"]["ca.crt"]
        assert all(bundle.startswith(base64.b64decode(own)) for bundle in modes.bundles())


def scale(kubectl: Kubectl, replicas: int) -> None:
    """Start or stop cert-manager's controller."""
    there = f"--namespace={CERT_MANAGER}"
    kubectl("scale", "deployment", CERT_MANAGER, there, f"--replicas={replicas}")
    kubectl("rollout", "status", "deployment", CERT_MANAGER, there, f"--timeout={DEADLINE_S}s", timeout_s=DEADLINE_S)


def provide(kubectl: Kubectl) -> str:
    """Create the Secret of mode `provided`; return the CA certificate (PEM)."""
    now, lifetimes = datetime.now(UTC), Lifetimes()
    authority = new_authority("provided", now, lifetimes)
    leaf = issue(authority, [f"{WEBHOOK}.{NAMESPACE}.svc"], now, lifetimes)
    texts = {"tls.crt": pem.of_certificates([leaf.certificate]), "tls.key": pem.of_key(leaf.key)}
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "provided", "namespace": NAMESPACE},
            "data": {key: base64.b64encode(text).decode() for key, text in texts.items()},
        }
    )
    return pem.of_certificates([authority.certificate]).decode()
