"""Manifests of the examples: the API server with the controllers' webhooks accepts each one as it is."""

from pathlib import Path

import pytest
from demo.kubectl import Kubectl
from scene import NAMESPACE

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

GPT = Path(__file__).parents[1] / "examples/gpt"
MANIFESTS = ("cronjob", "job", "jobset", "kueue", "leaderworkerset", "rayjob")
"""Those of kinds that the cluster has."""


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_api_server_accepts_a_manifest_of_the_gpt(kubectl: Kubectl, name: str) -> None:
    shown = kubectl(
        "create", f"--namespace={NAMESPACE}", "--dry-run=server", "--validate=strict", f"-f={GPT}/{name}.yaml"
    )
    assert shown.endswith("created (server dry run)\n")
