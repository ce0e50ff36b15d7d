"""Fixtures of all tests: a real API server, and a process that writes no goodput log."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import pytest_asyncio
from cluster.envtest import apiserver
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from support.programs.browser import ARGUMENTS, REMEDY, executable
from support.programs.pages import DEADLINE_S, CheckedPages
from support.servers.buckets import BUCKETS
from support.servers.connections import disconnected
from support.servers.emulator import running_emulator
from support.servers.object_servers import running_azurite, running_moto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from cluster.envtest import ApiServer
    from playwright.async_api import Browser
    from support.servers.emulator import Emulator
    from support.servers.object_servers import ObjectServer


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


@pytest.fixture(scope="session")
def plain_folder() -> Iterator[Path]:
    """The folder of all of `plain_path`."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def plain_path(plain_folder: Path) -> Path:
    """A folder as `tmp_path`; its path is short, and needs no quotes in a shell or in a chart."""
    return Path(tempfile.mkdtemp(dir=plain_folder))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(plain_folder: Path) -> AsyncIterator[Browser]:
    """A Chromium without a window."""
    from playwright.async_api import async_playwright, expect

    program = executable()
    if program is None:
        pytest.skip(REMEDY)
    expect.set_options(timeout=1000 * DEADLINE_S)
    async with async_playwright() as playwright:
        # The path of its socket is at most 107 bytes long.
        env = {**os.environ, "TMPDIR": str(plain_folder)}
        browser = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS, env=env, timeout=120_000)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def pages(browser: Browser) -> AsyncIterator[CheckedPages]:
    """Pages that are checked when the test ends."""
    pages = CheckedPages(browser)
    yield pages
    await pages.check()


@pytest.fixture(scope="session")
def gcs_emulator() -> Iterator[Emulator]:
    """One emulator for all tests, which keep to buckets of their own."""
    with running_emulator() as emulator:
        yield emulator


@pytest.fixture
def gcs_bucket(gcs_emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an empty bucket of the emulator, which Google's client of this process and of commands uses."""
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_emulator.url)
    name = f"bucket-{uuid4().hex[:8]}"
    gcs_emulator.make_bucket(name)
    return name


@pytest.fixture(params=BUCKETS)
def bucket_url(request: pytest.FixtureRequest) -> str:
    """The URL of a prefix in an empty bucket of each scheme, which this process and commands reach."""
    return f"{request.param}://{request.getfixturevalue(BUCKETS[request.param])}/runs"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[ObjectServer]:
    """One S3 server for all tests, which keep to buckets of their own."""
    with running_moto() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[ObjectServer]:
    """One server of Azure's blobs for all tests, which keep to containers of their own."""
    with running_azurite() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an empty bucket, which clients of this process and of commands reach."""
    return _own_bucket(s3_server, monkeypatch)


@pytest.fixture
def azure_container(azure_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an empty container, which clients of this process and of commands reach."""
    return _own_bucket(azure_server, monkeypatch)


def _own_bucket(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    for variable, value in server.environment().items():
        monkeypatch.setenv(variable, value)
    name = f"bucket-{uuid4().hex[:8]}"
    server.make_bucket(name)
    return name
