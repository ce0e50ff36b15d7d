"""Fixtures for contract tests of the operator: pods, captures and an operator over one namespace."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from support.cluster.definitions import install
from support.cluster.operating import Namespace, address, operating

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.operating import Operating


@pytest.fixture(scope="session")
def pod_ip() -> Iterator[str]:
    """An address of this machine that can stand in a pod's status."""
    try:
        with address() as ip:
            yield ip
    except (OSError, subprocess.CalledProcessError) as fault:
        pytest.skip(f"pods need an address that does not loop back: `ip address add` failed: {fault}")


@pytest.fixture
async def ml(cluster: ApiClient, namespace: str, pod_ip: str) -> Namespace:
    """A namespace for pods and captures."""
    await install(cluster)
    return Namespace(cluster, namespace, pod_ip)


@pytest.fixture
async def operator(ml: Namespace, tmp_path: Path) -> AsyncIterator[Operating]:
    """An operator over that namespace; its volume is `tmp_path`."""
    async with operating(ml.cluster, ml.name, tmp_path) as running:
        yield running
