"""Changes of `certificates.mode` on a cluster, and of the order of installation: pods get a run, and report it."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import injection_workloads as make
import pytest
from cluster import addons
from cluster.provider import Provider
from demo import injecting, installation
from demo.installation import NAMESPACE, OPERATOR, TRAINING_IMAGE, WEBHOOK
from demo.kubectl import Kubectl, eventually, repeating
from injection_scene import OPTED_IN, placed
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import Lifetimes, issue, new_authority
from release import parts
from run_scene import Runs, phase

pytestmark = pytest.mark.cluster

CERT_MANAGER = "cert-manager"
HERE = f"--namespace={NAMESPACE}"
CONFIGURATION = f"{WEBHOOK}-mutating-webhook-config"
DEADLINE_S = 180
CONTROL_PLANE_CA = "diagon.gke.io/control-plane-ca"
PROGRAM = """
from mldiagnostics import machinelearning_run
with machinelearning_run("reports") as run:
    run.step(1)
"""


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
        with repeating(self.injects, pause_s=0.2):
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
        eventually(modes.injects, "injection of a run", deadline_s=DEADLINE_S)
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


@pytest.mark.usefixtures("prepared")
def test_sdks_report_with_each_order_of_installation_and_with_cert_manager(
    modes: Modes, kubectl: Kubectl, helm: installation.Helm, operator_image: list[str]
) -> None:
    """Nobody copies a URL or a certificate; see decision 0028."""
    runs = Runs(kubectl, "default")

    def reports(name: str, authority: str) -> bool:
        """Return whether a program reports, in a pod that got its certificates from this Secret."""

        def published() -> bool:
            secrets = kubectl.items("secrets", HERE, f"--field-selector=metadata.name={authority}")
            trusted = [base64.b64decode(secret.get("data", {}).get("ca.crt", "")).decode() for secret in secrets]
            annotations = injecting.labelled_pod(kubectl, runs.namespace)["metadata"].get("annotations", {})
            return any(text and text.strip() in annotations.get(CONTROL_PLANE_CA, "") for text in trusted)

        eventually(published, f"the certificate of {authority} in a pod", deadline_s=DEADLINE_S)
        pod = make.pod_spec(image=TRAINING_IMAGE, command=["/opt/training/bin/python", "-c", PROGRAM])
        job = make.job(name, labels=OPTED_IN)
        kubectl.apply(placed(job | {"spec": {"template": {"spec": pod}}}, runs.namespace))
        status = runs.until(f"Job/{name}", phase("Completed"))["status"]
        kubectl("delete", "job", name, runs.here, "--wait=false")
        return "lastHeartbeatTime" in status

    installation.install(
        parts.OPERATOR, helm, [*operator_image, f"--set=controlPlane.certificates.mode={CERT_MANAGER}"]
    )
    assert reports("cert-manager", f"{OPERATOR}-api-tls")
    helm("uninstall", OPERATOR, HERE, "--wait")
    installation.install(parts.OPERATOR, helm, operator_image)
    assert reports("webhook-first", f"{OPERATOR}-certificates")
    helm("uninstall", WEBHOOK, HERE, "--wait")
    modes.change()
    assert reports("operator-first", f"{OPERATOR}-certificates")


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
