"""Fixtures of all tests: a real API server, and a process that writes no goodput log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from cluster.envtest import apiserver
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from support.servers.connections import disconnected
from support.servers.emulator import running_emulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from cluster.envtest import ApiServer


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real kube-apiserver with etcd, without controllers; tests keep to namespaces of their own."""
    with apiserver() as server:
        yield server


@pytest.fixture(autouse=True)
def no_goodput_log_of_another_test() -> Iterator[None]:
    """Calculators and monitors find the log that their own process writes: not that of a recorder left behind."""
    yield
    if (written_logs := sys.modules.get("mldiagnostics.goodput.written_logs")) is not None:
        written_logs.forget_written()


@pytest.fixture
async def admin(api_server: ApiServer) -> AsyncIterator[ApiClient]:
    """A client of the real API server that may do everything; ends when no connection is left."""
    client = await ApiClient.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    yield client
    await client.aclose()
    await disconnected(urlsplit(api_server.url).port)


@pytest.fixture
def cluster(admin: ApiClient) -> ApiClient:
    """The client of the tested code."""
    return admin


@pytest.fixture
async def namespace(admin: ApiClient) -> str:
    name = f"test-{uuid4().hex[:8]}"
    await admin.create(path_to("", "v1", "namespaces"), {"metadata": {"name": name}})
    return name


@pytest.fixture
def gcs_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of an empty bucket of an emulator, which Google's client of this process and of commands uses."""
    with running_emulator() as emulator:
        monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
        emulator.make_bucket("bucket")
        yield "bucket"
