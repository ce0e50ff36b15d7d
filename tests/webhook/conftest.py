"""Fixtures for contract tests of the webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.api_client import ApiClient
from support.cluster.namespaces import Stage
from support.cluster.operating import Namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.envtest import ApiServer


@pytest.fixture
def stage(admin: ApiClient, namespace: str) -> Stage:
    """Controllers in a namespace of the test; its pods never run."""
    return Stage(Namespace(admin, namespace, ip=""), published="")


@pytest.fixture
async def cluster(api_server: ApiServer, admin: ApiClient) -> AsyncIterator[ApiClient]:
    """Client of the webhook."""
    assert admin  # its fixture waits until no connection is left
    client = await ApiClient.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    yield client
    await client.aclose()
