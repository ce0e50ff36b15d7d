"""What contract tests of the operator share: a client of the real API server and a namespace of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from mldiagnostics_operator.cluster import Cluster, path_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.envtest import ApiServer


@pytest.fixture
async def cluster(api_server: ApiServer) -> AsyncIterator[Cluster]:
    client = await Cluster.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    yield client
    await client.close()


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    name = f"test-{uuid4().hex[:8]}"
    await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": name}})
    return name
