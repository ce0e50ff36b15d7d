"""Example: vLLM in a Deployment, which a real API server accepts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics.compat.run_vllm import main
from mldiagnostics_api.names import OPT_IN_LABEL, PROFILER_PORT_PREFIX
from mldiagnostics_kube.client.apiserver import path_to

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient

MANIFEST = Path(__file__).parents[2] / "examples/serving/vllm.yaml"


def documents() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the Deployment and its Service."""
    deployment, service = yaml.safe_load_all(MANIFEST.read_text())
    return deployment, service


def test_the_deployment_is_a_run_whose_profiler_is_found() -> None:
    deployment, service = documents()
    assert deployment["metadata"]["labels"][OPT_IN_LABEL] == "true"
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports[PROFILER_PORT_PREFIX] == 9999
    assert f"--port={ports['http']}" in container["args"]
    assert "MLDIAG_STORAGE" in {each["name"] for each in container["env"]}
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]


def test_its_options_are_those_of_the_wrapper(capsys: pytest.CaptureFixture[str]) -> None:
    [container] = documents()[0]["spec"]["template"]["spec"]["containers"]
    python, flag, module, *options = container["command"]
    assert (python, flag, module) == ("python", "-m", "mldiagnostics.run_vllm")
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    usage = capsys.readouterr().out
    assert all(option.partition("=")[0] in usage for option in options)


@pytest.mark.apiserver
async def test_the_api_server_accepts_both_objects(admin: ApiClient, namespace: str) -> None:
    deployment, service = documents()
    strictly = [("dryRun", "All"), ("fieldValidation", "Strict")]
    for body, path in (
        (deployment, path_to("apps", "v1", "deployments", namespace=namespace)),
        (service, path_to("", "v1", "services", namespace=namespace)),
    ):
        kept = await admin.request("POST", path, query=strictly, body=body, timeout_s=60)
        assert kept["metadata"]["name"] == body["metadata"]["name"]
