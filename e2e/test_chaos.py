"""Short form of the chaos suite: after each attack or disruption, every verdict and every pod is right.

`make chaos` runs all of them and prints their table.
"""

from collections.abc import Iterator

import pytest
from chaos import scenarios
from chaos.attacks import ATTACKS
from chaos.disruptions import DISRUPTIONS
from chaos.scenarios import Scenario
from chaos.stage import ATTACKER, VICTIM, Stage
from cluster.provider import Provider
from demo.installation import Helm, install
from demo.kubectl import Kubectl
from release.parts import OPERATOR

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("prepared", "operator", "webhook")]

SHORT = [each for each in (*ATTACKS.values(), *DISRUPTIONS.values()) if each.short]


@pytest.fixture(scope="module")
def operator(helm: Helm, operator_image: list[str]) -> None:
    """Install the operator with a replica that stands by."""
    install(OPERATOR, helm, [*operator_image, "--set=replicas=2"])


@pytest.fixture(scope="module")
def stage(running_cluster: Provider, kubectl: Kubectl) -> Iterator[Stage]:
    made = Stage(running_cluster, kubectl)
    made.prepare()
    yield made
    kubectl("delete", "namespace", VICTIM, ATTACKER, "--wait=false")


@pytest.mark.parametrize("scenario", SHORT, ids=lambda each: each.name)
def test_nobody_else_is_harmed(stage: Stage, kubectl: Kubectl, scenario: Scenario) -> None:  # noqa: ARG001  # for logs
    assert scenarios.measure(scenario, stage).problems() == []
