"""What contract tests of the operator share: a client of the real API server and a namespace of one's own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from mldiagnostics_operator.cluster import Cluster, path_to
from support.connections import disconnected
from support.definitions import install
from support.operating import Namespace, address, operating

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from support.operating import Operating


@pytest.fixture
async def cluster(api_server: ApiServer) -> AsyncIterator[Cluster]:
    client = await Cluster.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    yield client
    await client.close()
    await disconnected(urlsplit(api_server.url).port)


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    name = f"test-{uuid4().hex[:8]}"
    await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def pod_ip() -> Iterator[str]:
    """An address of this machine that can stand in a pod's status."""
    try:
        with address() as ip:
            yield ip
    except (OSError, subprocess.CalledProcessError) as fault:
        pytest.skip(f"pods need an address that does not loop back: `ip address add` failed: {fault}")


@pytest.fixture
async def ml(cluster: Cluster, namespace: str, pod_ip: str) -> Namespace:
    """A namespace for pods and captures."""
    await install(cluster)
    return Namespace(cluster, namespace, pod_ip)


@pytest.fixture
async def operator(ml: Namespace, tmp_path: Path) -> AsyncIterator[Operating]:
    """An operator over that namespace; its volume is `tmp_path`."""
    async with operating(ml.cluster, ml.name, tmp_path) as running:
        yield running
