"""What contract tests of the webhook share: an administrator of the real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_kube.client import ApiClient
from support.connections import disconnected
from support.operating import Namespace
from support.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.envtest import ApiServer


@pytest.fixture
async def admin(api_server: ApiServer) -> AsyncIterator[ApiClient]:
    client = await ApiClient.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    yield client
    await client.aclose()
    await disconnected(urlsplit(api_server.url).port)


@pytest.fixture
async def namespace(admin: ApiClient) -> str:
    name = f"test-{uuid4().hex[:8]}"
    await admin.create(path_to("", "v1", "namespaces"), {"metadata": {"name": name}})
    return name


@pytest.fixture
def stage(admin: ApiClient, namespace: str) -> Stage:
    """The place of the controllers in that namespace; its pods are never run."""
    return Stage(Namespace(admin, namespace, ip=""), published="")


@pytest.fixture
async def cluster(api_server: ApiServer, admin: ApiClient) -> AsyncIterator[ApiClient]:
    """The webhook's own door."""
    assert admin  # it waits until no connection is left
    client = await ApiClient.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    yield client
    await client.aclose()
