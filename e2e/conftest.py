"""Fixtures: the cluster and its installations, created once; failures include logs, events and objects."""

from collections.abc import Generator, Iterator
from typing import Any

import claim_scene
import pytest
import scene
from cloud import ENDPOINT, Cloud
from cluster import addons
from cluster.progress import ClusterError
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import tool
from demo import diagnosis, injecting, installation, node_claim
from demo.kubectl import Kubectl
from demo.on_cluster import start_training
from release.parts import OPERATOR, WEBHOOK
from sparing_clients import SparingHelm, SparingKubectl

BUCKET = "e2e-captures"
SMALL = {"REST_SECONDS": 0.25, "WIDTH": 64}
"""Of the training job, which runs until the end of the tests: it rests after each step, and a step costs 6 ms."""
VALUES = {
    "replicas": 2,
    "policy.allowedStorage": {"*": ["volume:///"], scene.NAMESPACE: ["/tmp"]},
    "extraEnv": [{"name": "STORAGE_EMULATOR_HOST", "value": ENDPOINT}],
    "controlPlane.peer.enabled": True,
}
"""Of all modules but one, in the cluster's only installation: other values replace its pods, which takes 25 s."""
FIRST, LAST = (
    ("test_chaos", "test_cli_xprof", "test_result_files", "test_diagnosis"),
    ("test_injection_faults", "test_webhook_installed", "test_certificates"),
)
"""Modules with an operator of other values, and those after which the webhook is installed again.
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests of a cluster so that its installations change seldom; other tests keep their order."""
    items.sort(key=lambda item: _turn(item) if item.get_closest_marker("cluster") else 0)


def _turn(item: pytest.Item) -> int:
    module = item.path.stem
    return FIRST.index(module) - len(FIRST) if module in FIRST else 1 + LAST.index(module) if module in LAST else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    client = getattr(item, "funcargs", {}).get("kubectl")
    if report.failed and isinstance(client, Kubectl):
        report.sections += diagnosis.collect(client).items()
    return report


@pytest.fixture(scope="session")
def running_cluster() -> Provider:
    """Running cluster; it keeps running after the tests."""
    try:
        chosen = provider()
    except ClusterError as error:
        pytest.skip(str(error))
    chosen.up()
    return chosen


@pytest.fixture(scope="session")
def kubectl(running_cluster: Provider) -> Kubectl:
    """Client kubectl of the administrator."""
    return SparingKubectl(tool("kubectl"), running_cluster.kubeconfig)


@pytest.fixture(scope="session")
def helm(running_cluster: Provider) -> installation.Helm:
    """Client helm of the administrator."""
    return SparingHelm(tool("helm"), running_cluster.kubeconfig)


@pytest.fixture(scope="session")
def prepared(running_cluster: Provider) -> None:
    """Install the JobSet controller and load the image of the training job."""
    installation.prepare(running_cluster)


@pytest.fixture(scope="session")
def operator_image(running_cluster: Provider) -> list[str]:
    """Load the image of the operator and return its helm arguments."""
    return installation.load_image(OPERATOR, running_cluster)


@pytest.fixture(scope="session")
def webhook_image(running_cluster: Provider) -> list[str]:
    """Load the image of the webhook and return its helm arguments."""
    return installation.load_image(WEBHOOK, running_cluster)


@pytest.fixture(scope="session")
def leader_worker_sets(running_cluster: Provider) -> None:
    """Install the LeaderWorkerSet controller."""
    addons.install("lws", running_cluster)


@pytest.fixture(scope="session")
def namespace(kubectl: Kubectl) -> str:
    """Namespace of the captures, without those of an earlier session."""
    kubectl.apply(scene.namespace())
    kubectl("wait", "--for=create", f"namespace/{scene.NAMESPACE}")
    if kubectl.exists("crd", scene.RESOURCE):
        kubectl("delete", scene.RESOURCE, "--all", f"--namespace={scene.NAMESPACE}")
    return scene.NAMESPACE


@pytest.fixture(scope="session")
def claim(kubectl: Kubectl, operator_image: list[str]) -> str:
    """Claim in the namespace of the operator over an empty directory of the node."""
    assert operator_image, "it is loaded"
    node_claim.create(kubectl, claim_scene.NAME)
    return claim_scene.NAME


@pytest.fixture(scope="module")
def operator_values() -> dict[str, Any]:
    """Values of the operator by dotted path; a module may override this fixture."""
    return VALUES


@pytest.fixture(scope="module")
def operator(
    helm: installation.Helm,
    operator_image: list[str],
    operator_values: dict[str, Any],
    namespace: str,  # noqa: ARG001  # must exist
) -> None:
    """Install the operator with the values of these tests; a module may override this fixture."""
    installation.install(OPERATOR, helm, [*operator_image, *installation.settings(operator_values)])


@pytest.fixture(scope="module")
def webhook(helm: installation.Helm, kubectl: Kubectl, webhook_image: list[str]) -> None:
    """Install the webhook with default values and wait until it injects; a module may override this."""
    installation.install(WEBHOOK, helm, webhook_image)
    injecting.until_replaced(kubectl)
    injecting.until_injected(kubectl)


@pytest.fixture(scope="session")
def training(kubectl: Kubectl, prepared: None, namespace: str) -> Iterator[list[str]]:  # noqa: ARG001  # loads its image
    """Run the example's JobSet of two hosts until the end of the tests; yield the names of its pods."""
    yield start_training(kubectl, namespace, **SMALL)
    kubectl("delete", "jobset", "training", f"--namespace={namespace}", "--wait=false")


@pytest.fixture(scope="session")
def cloud(running_cluster: Provider, kubectl: Kubectl, training: list[str]) -> Cloud:
    """Bucket in a storage emulator in the cluster."""
    return Cloud.start(running_cluster, kubectl, BUCKET, seen_from=training[0])
