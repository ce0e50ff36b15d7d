from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cluster.certificates import make_certificates
from cluster.envtest import apiserver
from cluster.ports import free_port, until_open
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to
from mldiagnostics_operator.preflight import ADDON_LABEL, missing_resource
from prometheus_client.parser import text_string_to_metric_families
from support.cluster.definitions import DEFINITIONS, connection, connections, install
from support.programs.peak_memory import peak_bytes
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from cluster.envtest import ApiServer

COMMAND = (sys.executable, "-m", "mldiagnostics_operator")
DEFINITION = f"{DEFINITIONS}/{CONNECTIONS.definition_name}"
LEASES = path_to("coordination.k8s.io", "v1", "leases", namespace="default")
EXPIRING = {"MLDIAG_LEASE_DURATION_SECONDS": "3", "MLDIAG_LEASE_RENEW_DEADLINE_SECONDS": "2"}
"""Settings of replicas that wait until a Lease expires: each counts its own duration."""
DEADLINE_S = 120.0
IDLE_CONNECTIONS = 200


def run(**environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environ}
    return subprocess.run(COMMAND, env=env, capture_output=True, text=True, check=False, timeout=DEADLINE_S)


def test_invalid_settings_end_it_and_are_all_reported() -> None:
    ended = run(MLDIAG_HTTP_PORT="high", MLDIAG_LOG_LEVEL="loud")
    assert ended.returncode == 2
    assert "MLDIAG_HTTP_PORT: 'high'" in ended.stderr
    assert "MLDIAG_LOG_LEVEL: 'loud'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_cluster_it_ends() -> None:
    ended = run(MLDIAG_HTTP_PORT="0")
    assert ended.returncode == 2
    assert "/.kube/config': no such file; set KUBECONFIG" in ended.stderr
    assert "Traceback" not in ended.stderr


class Operator:
    """A replica in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = 0
        self.lines: list[dict[str, Any]] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout
        async for raw in self.process.stdout:
            line = json.loads(raw)
            self.lines.append(line)
            self.port = line.get("port", self.port)

    async def request(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return response.status, (await response.text()).strip()
        except aiohttp.ClientError:
            return 0, ""

    async def reaches(self, stage: str) -> int:
        """Wait for a stage; return the status of the readiness probe."""
        until = asyncio.get_running_loop().time() + DEADLINE_S
        while True:
            status, text = await self.request("/readyz")
            if text == stage:
                return status
            ended = self.process.returncode is not None or asyncio.get_running_loop().time() > until
            assert not ended, f"{text} instead of {stage}: {self.log()}"
            await asyncio.sleep(0.05)

    async def metric(self, name: str) -> float:
        _, text = await self.request("/metrics")
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        return next(sample.value for sample in samples if sample.name == name)

    async def ends(self) -> int:
        """Wait for the end; return the exit status."""
        status = await asyncio.wait_for(self.process.wait(), DEADLINE_S)
        await self.reading
        return status

    def log(self) -> str:
        return "\n".join(line["message"] for line in self.lines)


@pytest.fixture(scope="module")
def own_server() -> Iterator[ApiServer]:
    """A server for these tests only: they remove the definition that others need."""
    with apiserver() as server:
        yield server


@pytest.fixture
async def own(own_server: ApiServer) -> AsyncIterator[ApiClient]:
    client = await ApiClient.connect({"KUBECONFIG": str(own_server.kubeconfig)})
    yield client
    await client.aclose()


@pytest.fixture
async def installed(own: ApiClient) -> ApiClient:
    await install(own)
    return own


@asynccontextmanager
async def replica(server: ApiServer, folder: Path, name: str = "one", **environ: str) -> AsyncIterator[Operator]:
    """Run a replica; those that share a folder compete for one Lease."""
    env = {
        **of_programs(),
        "KUBECONFIG": str(server.kubeconfig),
        "GCE_METADATA_HOST": "127.0.0.1:1",
        "POD_NAME": name,
        "POD_UID": f"uid-of-{name}",
        "MLDIAG_HTTP_PORT": "0",
        "MLDIAG_VOLUME_ROOT": str(folder),
        "MLDIAG_LEASE_NAME": lease_of(folder),
        "MLDIAG_LEASE_DURATION_SECONDS": "60",
        "MLDIAG_LEASE_RENEW_DEADLINE_SECONDS": "40",
        "MLDIAG_LEASE_RETRY_SECONDS": "0.2",
        **environ,
    }
    process = await asyncio.create_subprocess_exec(*COMMAND, env=env, stdout=asyncio.subprocess.PIPE)
    one = Operator(process)
    try:
        yield one
    finally:
        if process.returncode is None:
            process.kill()
        await one.ends()


def lease_of(folder: Path) -> str:
    return folder.name.replace("_", "-")


async def holder(cluster: ApiClient, folder: Path) -> str:
    spec: dict[str, str] = (await cluster.get(f"{LEASES}/{lease_of(folder)}"))["spec"]
    return spec.get("holderIdentity", "")


async def remove_definition(cluster: ApiClient) -> None:
    with suppress(NotFound):
        await cluster.delete(DEFINITION, uid=(await cluster.get(DEFINITION))["metadata"]["uid"])
    async with asyncio.timeout(DEADLINE_S):
        while await missing_resource(cluster, [CONNECTIONS]) is None:  # noqa: ASYNC110 - the API server is polled
            await asyncio.sleep(0.05)


async def created(cluster: ApiClient, body: dict[str, Any]) -> None:
    """Create a capture; the handler of a new definition may start a moment after its discovery."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(ClusterError):
                await cluster.create(connections("default"), body)
                return
            await asyncio.sleep(0.05)


async def phase(cluster: ApiClient, name: str) -> str:
    """Read a capture's phase; empty while it has none."""
    body = await cluster.get(f"{connections('default')}/{name}")
    current: str = body.get("status", {}).get("phase", "")
    return current


async def until(read: Callable[[], Awaitable[str]], expected: str) -> None:
    """Wait until a value is read."""
    async with asyncio.timeout(DEADLINE_S):
        while await read() != expected:  # noqa: ASYNC110 - polls the API server
            await asyncio.sleep(0.05)


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_the_operator_leads_and_releases_the_lease_on_sigterm(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        async with replica(own_server, tmp_path) as one:
            assert await one.reaches("leading") == 200
            assert (await holder(installed, tmp_path)).startswith("one/uid-of-one/")
            assert await one.metric("mldiagnostics_operator_leader") == 1
            assert await one.request("/healthz") == (200, "leading; the watch is 0 s behind the API server")
            _, metrics = await one.request("/metrics")
            assert 'mldiagnostics_operator_info{cluster="k8s-' in metrics
            one.process.send_signal(signal.SIGTERM)
            assert await one.ends() == 0
        assert await holder(installed, tmp_path) == ""
        assert "Leaving: SIGTERM" in one.log()

    async def test_an_idle_connection_costs_little_memory(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        files, port = make_certificates(tmp_path / "pki", hosts=["127.0.0.1"]), free_port()
        folder = files.mount("apiserver", tmp_path / "mounted")
        await install(installed, RUNS)
        settings = {"CONTROL_PLANE": "true", "CONTROL_PLANE_PORT": f"{port}"}
        settings |= {"CONTROL_PLANE_CERTIFICATE_FOLDER": str(folder), "CLUSTER_NAME": "test"}
        environ = {f"MLDIAG_{name}": value for name, value in settings.items()}
        trust = ssl.create_default_context(cafile=files.ca)
        async with replica(own_server, tmp_path, **environ) as one:
            await one.reaches("leading")
            await until_open(port, deadline_s=DEADLINE_S)
            before = peak_bytes(one.process.pid)
            open_ones = [await asyncio.open_connection("127.0.0.1", port, ssl=trust) for _ in range(IDLE_CONNECTIONS)]
            each = (peak_bytes(one.process.pid) - before) / IDLE_CONNECTIONS
            for _, writer in open_ones:
                writer.transport.abort()
        assert each < 100_000, "4096 of them take more than half of the default limit"

    async def test_without_the_resource_it_waits_and_logs_it(
        self, own_server: ApiServer, own: ApiClient, tmp_path: Path
    ) -> None:
        await remove_definition(own)
        async with replica(own_server, tmp_path) as one:
            assert await one.reaches("waiting for the custom resource") == 200
            assert "apply crds/" in one.log()
            await install(own)
            await one.reaches("leading")

    async def test_a_leader_survives_that_the_resource_is_deleted_and_created_again(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        async with replica(own_server, tmp_path) as one:
            await one.reaches("leading")
            await created(installed, connection("before", podName="absent", waitForPodsSeconds=600))
            await until(lambda: phase(installed, "before"), "Pending")
            await remove_definition(installed)
            assert await one.reaches("waiting for the custom resource") == 200
            assert await one.metric("mldiagnostics_operator_resource_missing") == 1
            assert "apply crds/" in one.log()
            await install(installed)
            await one.reaches("leading")
            assert await one.metric("mldiagnostics_operator_resource_missing") == 0
            await created(installed, connection("after", podName="absent"))
            await until(lambda: phase(installed, "after"), "Failed")
            # Replaced between two checks.
            await remove_definition(installed)
            await install(installed)
            await created(installed, connection("last", podName="absent"))
            await until(lambda: phase(installed, "last"), "Failed")
            assert one.process.returncode is None
            assert await one.metric("mldiagnostics_captures_queued") == 0
        assert "Leaving" not in one.log()

    async def test_a_resource_that_goes_before_the_lease_is_acquired_is_awaited(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        async with replica(own_server, tmp_path, "one", **EXPIRING) as one:
            await one.reaches("leading")
            async with replica(own_server, tmp_path, "two", **EXPIRING) as two:
                await two.reaches("standby")
                await remove_definition(installed)
                one.process.kill()
                await one.ends()
                await two.reaches("waiting for the custom resource")
                await install(installed)
                await two.reaches("leading")
                await created(installed, connection("after", podName="absent"))
                await until(lambda: phase(installed, "after"), "Failed")

    async def test_without_the_api_server_it_is_not_ready_but_alive(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        assert installed
        await asyncio.to_thread(own_server.stop_apiserver)
        async with replica(own_server, tmp_path) as one:
            assert await one.reaches("starting") == 503
            assert (await one.request("/healthz"))[0] == 200
            await asyncio.to_thread(own_server.start_apiserver)
            await one.reaches("leading")

    async def test_the_standby_follows_a_killed_leader(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        async with replica(own_server, tmp_path, "one", **EXPIRING) as one:
            await one.reaches("leading")
            async with replica(own_server, tmp_path, "two", **EXPIRING) as two:
                assert await two.reaches("standby") == 200
                assert await two.metric("mldiagnostics_operator_leader") == 0
                one.process.kill()
                await one.ends()
                await two.reaches("leading")
                assert (await holder(installed, tmp_path)).startswith("two/")

    async def test_a_restarted_container_does_not_wait_for_its_earlier_process(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        slow = {"MLDIAG_LEASE_DURATION_SECONDS": "3600"}
        async with replica(own_server, tmp_path, **slow) as one:
            await one.reaches("leading")
            one.process.kill()
            await one.ends()
        async with replica(own_server, tmp_path, **slow) as again:
            await again.reaches("leading")
            again.process.send_signal(signal.SIGTERM)
            assert await again.ends() == 0
        assert await holder(installed, tmp_path) == ""

    async def test_a_leader_that_loses_the_lease_stands_by_and_leads_again(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        async with replica(own_server, tmp_path, **EXPIRING) as one:
            await one.reaches("leading")
            first = await holder(installed, tmp_path)
            await installed.patch(f"{LEASES}/{lease_of(tmp_path)}", {"spec": {"holderIdentity": "another"}})
            again = first
            async with asyncio.timeout(DEADLINE_S):
                while again == first or not again.startswith("one/"):  # the other one renews nothing
                    await asyncio.sleep(0.05)
                    again = await holder(installed, tmp_path)
            await one.reaches("leading")
            await created(installed, connection("after-the-loss", podName="absent"))
            await until(lambda: phase(installed, "after-the-loss"), "Failed")
            one.process.send_signal(signal.SIGTERM)
            assert await one.ends() == 0
        assert "Leaving: loss of the Lease" in one.log()

    async def test_the_operator_stands_down_for_a_managed_addon(
        self, own_server: ApiServer, installed: ApiClient, tmp_path: Path
    ) -> None:
        await installed.patch(DEFINITION, {"metadata": {"labels": {ADDON_LABEL: "Reconcile"}}})
        async with replica(own_server, tmp_path, **EXPIRING) as one:
            assert await one.reaches("standing down for a managed add-on") == 200
            assert await one.metric("mldiagnostics_operator_standing_down") == 1
            async with replica(own_server, tmp_path, "two", MLDIAG_IGNORE_MANAGED_ADDON="true", **EXPIRING) as two:
                await two.reaches("leading")
            await installed.patch(DEFINITION, {"metadata": {"labels": {ADDON_LABEL: None}}})
            await one.reaches("leading")
            assert await one.metric("mldiagnostics_operator_standing_down") == 0
        assert ADDON_LABEL in one.log()
