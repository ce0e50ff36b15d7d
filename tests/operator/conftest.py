"""Fixtures for contract tests of the operator: pods, captures and an operator over one namespace."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.api_client import ApiClient
from support.cluster.api_server_faults import FaultyApiServer, faulty_api_server
from support.cluster.definitions import install
from support.cluster.operating import Namespace, address, operating

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from cluster.envtest import ApiServer
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


@pytest.fixture
async def faulty(
    api_server: ApiServer, admin: ApiClient, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[FaultyApiServer]:
    """A proxy before the API server that injects faults."""
    assert admin  # its fixture waits until no connection is left
    async with faulty_api_server(api_server.kubeconfig, tmp_path_factory.mktemp("faulty")) as proxy:
        yield proxy


@pytest.fixture
async def faulty_cluster(faulty: FaultyApiServer) -> AsyncIterator[ApiClient]:
    """A client of that proxy."""
    client = await ApiClient.connect({"KUBECONFIG": str(faulty.kubeconfig)})
    yield client
    await client.aclose()
