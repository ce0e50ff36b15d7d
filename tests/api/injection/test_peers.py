"""Google's SDK, unchanged, computes the run of an injected pod."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.names import RUN_ANNOTATION
from support.cluster.recordings import injected, recorded
from support.programs import environments

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.peers

PEERS = Path(__file__).parents[3] / "e2e/peers"


@contextmanager
def metadata_server() -> Iterator[int]:
    """Run the metadata server of a GKE node; yield its port."""
    command = [sys.executable, str(PEERS / "metadata_server.py"), "0", "train-cluster"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout
            yield int(server.stdout.readline())
        finally:
            server.kill()


@pytest.fixture(scope="module")
def peer_sdk() -> Path:
    try:
        return environments.interpreter("peer-sdk")
    except environments.Unavailable as error:
        pytest.skip(f"no environment peer-sdk: {error}")


@pytest.mark.parametrize("title", ["jobset", "rayjob-worker", "leaderworkerset-worker", "cronjob", "pod"])
def test_the_sdk_computes_the_run_that_the_pod_is_annotated_with(peer_sdk: Path, title: str) -> None:
    pod = injected(*recorded(title))
    environment = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"] if "value" in each}
    with metadata_server() as port:
        # The SDK reads from metadata.google.internal, through this proxy.
        network = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "http_proxy": f"http://127.0.0.1:{port}"}
        command = [str(peer_sdk), str(PEERS / "run_id.py")]
        result = subprocess.run(
            command, env=environment | network, capture_output=True, text=True, check=False, timeout=90
        )
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    assert answer["run"] == pod["metadata"]["annotations"][RUN_ANNOTATION]
    assert answer["workload"]["parent_workload"] == ("cronjob" if title == "cronjob" else None)
    assert answer["workload"]["labels"] == {"managed-mldiagnostics-gke": "true", "team": "infra"}
