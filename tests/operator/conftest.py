"""What contract tests of the operator share: a client of the real API server and a namespace of one's own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from mldiagnostics_operator.cluster import Cluster, path_to
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


async def disconnected(port: int | None) -> None:
    """Wait until no connection of this loop leads to the port: closing TLS takes an answer, and the loop ends soon."""
    watched = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    async with asyncio.timeout(10):
        while port in {peer_port(key.fd) for key in watched.values()}:  # noqa: ASYNC110 - the selector is asked
            await asyncio.sleep(0.01)


def peer_port(descriptor: int) -> int | None:
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        peer = connection.getpeername()
        return peer[1] if isinstance(peer, tuple) else None
    return None


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
