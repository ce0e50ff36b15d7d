"""The cluster of these tests and what is installed in it, made once; a failure comes with logs, events and objects."""

import json
from collections.abc import Generator, Iterator

import pytest
import scene
from cloud import ENDPOINT, Cloud
from cluster import addons
from cluster.progress import ClusterError
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import tool
from demo import diagnosis, injecting, installation
from demo.kubectl import Kubectl
from demo.on_cluster import start_training
from release.parts import OPERATOR, WEBHOOK

BUCKET = "e2e-captures"
VALUES = {
    "policy.allowedStorage": {"*": ["volume:///"], scene.NAMESPACE: ["/tmp"]},
    "extraEnv": [{"name": "STORAGE_EMULATOR_HOST", "value": ENDPOINT}],
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    client = getattr(item, "funcargs", {}).get("kubectl")
    if report.failed and isinstance(client, Kubectl):
        report.sections += diagnosis.collect(client).items()
    return report


@pytest.fixture(scope="session")
def running_cluster() -> Provider:
    """A cluster that is up; it stays up after the tests."""
    try:
        chosen = provider()
    except ClusterError as error:
        pytest.skip(str(error))
    chosen.up()
    return chosen


@pytest.fixture(scope="session")
def kubectl(running_cluster: Provider) -> Kubectl:
    """kubectl as the administrator."""
    return Kubectl(tool("kubectl"), running_cluster.kubeconfig)


@pytest.fixture(scope="session")
def helm(running_cluster: Provider) -> installation.Helm:
    return installation.Helm(tool("helm"), running_cluster.kubeconfig)


@pytest.fixture(scope="session")
def prepared(running_cluster: Provider) -> None:
    """The JobSet controller and the training job's image are in the cluster."""
    installation.prepare(running_cluster)


@pytest.fixture(scope="session")
def operator_image(running_cluster: Provider) -> list[str]:
    """The operator's image is in the cluster; gives the helm arguments that go with it."""
    return installation.load_image(OPERATOR, running_cluster)


@pytest.fixture(scope="session")
def webhook_image(running_cluster: Provider) -> list[str]:
    """The webhook's image is in the cluster; gives the helm arguments that go with it."""
    return installation.load_image(WEBHOOK, running_cluster)


@pytest.fixture(scope="session")
def leader_worker_sets(running_cluster: Provider) -> None:
    """The LeaderWorkerSet controller is in the cluster."""
    addons.install("lws", running_cluster)


@pytest.fixture(scope="session")
def namespace(kubectl: Kubectl) -> str:
    """The namespace of captures, without those of an earlier session."""
    kubectl.apply(scene.namespace())
    kubectl("wait", "--for=create", f"namespace/{scene.NAMESPACE}")
    if kubectl.exists("crd", scene.RESOURCE):
        kubectl("delete", scene.RESOURCE, "--all", f"--namespace={scene.NAMESPACE}")
    return scene.NAMESPACE


@pytest.fixture(scope="module")
def operator(helm: installation.Helm, operator_image: list[str], namespace: str) -> None:  # noqa: ARG001  # it must be there
    """The operator, installed with what these tests need beyond the chart's defaults; modules may install otherwise."""
    values = [part for name, value in VALUES.items() for part in ("--set-json", f"{name}={json.dumps(value)}")]
    installation.install(OPERATOR, helm, [*operator_image, *values])


@pytest.fixture(scope="module")
def webhook(helm: installation.Helm, kubectl: Kubectl, webhook_image: list[str]) -> None:
    """The webhook, installed without a value, and reached by the API server; modules may install otherwise."""
    installation.install(WEBHOOK, helm, webhook_image)
    injecting.until_replaced(kubectl)
    injecting.until_injected(kubectl)


@pytest.fixture(scope="session")
def training(kubectl: Kubectl, prepared: None, namespace: str) -> Iterator[list[str]]:  # noqa: ARG001  # its image
    """The example's JobSet of two hosts; gives the names of its pods, which train until the tests are over."""
    yield start_training(kubectl, namespace)
    kubectl("delete", "jobset", "training", f"--namespace={namespace}", "--wait=false")


@pytest.fixture(scope="session")
def cloud(running_cluster: Provider, kubectl: Kubectl, training: list[str]) -> Cloud:
    """A bucket in a storage emulator inside the cluster."""
    return Cloud.start(running_cluster, kubectl, BUCKET, seen_from=training[0])
