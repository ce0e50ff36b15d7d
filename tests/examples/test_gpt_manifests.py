"""Manifests of the GPT: each opts in at the place where the webhook looks, and shows its profiler port."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics_api.names import OPT_IN_LABEL, PROFILER_PORT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

GPT = Path(__file__).parents[2] / "examples/gpt"


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the containers of all pod templates."""
    if isinstance(value, dict):
        yield from value.get("containers", ())
        for part in value.values():
            yield from containers(part)
    elif isinstance(value, list):
        for part in value:
            yield from containers(part)


@pytest.mark.parametrize("path", sorted(GPT.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_manifest_opts_in_and_names_its_port(path: Path) -> None:
    body = yaml.safe_load(path.read_text())
    run = body["spec"]["jobTemplate"] if body["kind"] == "CronJob" else body
    assert run["metadata"]["labels"][OPT_IN_LABEL] == "true"
    for container in containers(body["spec"]):
        assert [port["name"] for port in container["ports"]] == [PROFILER_PORT_PREFIX]
        assert "MLDIAG_STORAGE" in {each["name"] for each in container["env"]}
