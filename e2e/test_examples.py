"""Manifests of the examples: the API server with the controllers' webhooks accepts each one as it is."""

from pathlib import Path

import pytest
from cluster import addons
from cluster.provider import Provider
from demo.kubectl import Kubectl

pytestmark = pytest.mark.cluster

GPT = Path(__file__).parents[1] / "examples/gpt"
MANIFESTS = ("cronjob", "job", "jobset", "kueue", "leaderworkerset", "rayjob")
"""Examples of kinds that the cluster has."""


@pytest.fixture(scope="module", autouse=True)
def _controllers(running_cluster: Provider) -> None:
    for name in ("jobset", "lws", "kuberay"):
        addons.install(name, running_cluster)


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_api_server_accepts_a_manifest_of_the_gpt(kubectl: Kubectl, name: str) -> None:
    arguments = ("--namespace=default", "--dry-run=server", "--validate=strict")
    shown = kubectl("create", *arguments, f"-f={GPT}/{name}.yaml")
    assert shown.endswith("created (server dry run)\n")
