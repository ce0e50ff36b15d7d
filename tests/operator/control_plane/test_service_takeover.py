"""Two operators as processes; the leader is killed in a flood of reports, and the other one takes over."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cluster.certificates import make_certificates
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import Storage
from support.cluster.control_planes import Reporter, Running, make_account
from support.cluster.definitions import install
from support.cluster.operating import operator_process

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

DEADLINE_S = 300
HOSTS = 6
EVENTS = 300
START = 1_790_000_000_000_000


@dataclass
class Host:
    """A process that reports events until all are acknowledged; no answer may take back an acknowledgement."""

    reporter: Reporter
    recorded: int = 0
    acknowledged: int = 0
    persisted: int = 0

    def event(self, number: int) -> Event:
        return Event(START + number * 1_000_000, EventCode.STEP_START, number, 0, self.reporter.run)

    async def report(self) -> None:
        """Send the next report; errors are those of a server that is away."""
        self.recorded = min(self.recorded + 10, EVENTS)
        items = packing.pack([self.event(number) for number in range(self.acknowledged, self.recorded)])
        answer = await self.reporter.report(phase="Completed", events={"first": self.acknowledged, "items": items})
        if answer.status != 200:
            assert answer.status in {401, 403, 429, 503}, answer  # 403: the API server does not answer in time
            await asyncio.sleep(0.2)  # as a client does, which has a rate
            return
        assert answer.body["persistedSequence"] >= self.persisted
        assert self.acknowledged <= answer.body["persistedEvents"] <= self.recorded
        self.persisted, self.acknowledged = answer.body["persistedSequence"], answer.body["persistedEvents"]

    @property
    def is_done(self) -> bool:
        return self.acknowledged == EVENTS and self.persisted == self.reporter.sequence


async def address(cluster: ApiClient, namespace: str, *, other_than: str = "") -> str:
    """Wait until the Service leads to a leader; return its address."""
    path = path_to("discovery.k8s.io", "v1", "endpointslices", namespace=namespace, name="plane-ipv4")
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                body: dict[str, Any] = await cluster.get(path)
            except NotFound:
                body = {}
            if body.get("endpoints"):
                url = f"https://{body['endpoints'][0]['addresses'][0]}:{body['ports'][0]['port']}"
                if url != other_than:
                    return url
            await asyncio.sleep(0.05)


async def test_a_leader_that_is_killed_in_a_flood_loses_nothing_that_it_acknowledged(
    cluster: ApiClient, api_server: ApiServer, namespace: str, pod_ip: str, tmp_path: Path
) -> None:
    await install(cluster, CONNECTIONS)
    await install(cluster, RUNS)
    await make_account(cluster, namespace)
    service = {"metadata": {"name": "plane"}, "spec": {"ports": [{"name": "https", "port": 8443}]}}
    await cluster.create(path_to("", "v1", "services", namespace=namespace), service)
    files = make_certificates(tmp_path / "pki", hosts=[pod_ip])
    for made, name in ((files.certificate("apiserver"), "tls.crt"), (files.key("apiserver"), "tls.key")):
        shutil.copy(made, tmp_path / "pki" / name)
    settings = {
        "POD_IP": pod_ip,
        "MLDIAG_CONTROL_PLANE": "true",
        "MLDIAG_CONTROL_PLANE_PORT": "0",
        "MLDIAG_CONTROL_PLANE_SERVICE": "plane",
        "MLDIAG_CONTROL_PLANE_PUBLISH": "false",
        "MLDIAG_CONTROL_PLANE_CERTIFICATE_FOLDER": str(tmp_path / "pki"),
    }
    volume = tmp_path / "volume"
    volume.mkdir()

    def replica(name: str) -> Any:
        log = tmp_path / f"{name}.log"
        return operator_process(
            api_server.kubeconfig, namespace, volume, pod=name, uid=f"uid-of-{name}", log=log, **settings
        )

    trust = ssl.create_default_context(cafile=files.ca)
    async with (
        replica("one") as one,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
    ):
        url = await address(cluster, namespace)
        async with replica("two"):
            pods = Running(cluster, namespace, None, None, None, session, url)  # type: ignore[arg-type] - pods only
            hosts = [Host(await pods.reporter(f"trainer-{number}")) for number in range(HOSTS)]
            for number, host in enumerate(hosts):
                host.reporter.incarnation = f"{number:08x}"

            async def flood(host: Host) -> None:
                while not host.is_done:
                    try:
                        await host.report()
                    except aiohttp.ClientError:
                        host.reporter.url = await address(cluster, namespace, other_than=host.reporter.url)

            async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
                for host in hosts:
                    group.create_task(flood(host))
                while any(host.acknowledged < 30 for host in hosts):  # noqa: ASYNC110 - polls the clients
                    await asyncio.sleep(0)
                await one.kill()
            assert all(host.reporter.url != url for host in hosts)
    for host in hosts:
        await check_journal(volume, RunKey(namespace, host.reporter.run), host)


async def check_journal(volume: Path, key: RunKey, host: Host) -> None:
    """Check that the journal has the last report, and every event once."""
    storage, table = Storage(volume), ReportTable()
    await Journal(table, storage, None).recall(key)
    answer = table.answer(key, host.reporter.incarnation)
    assert (answer.persisted_sequence, answer.persisted_events) == (host.reporter.sequence, EVENTS)
    history, expected = History(), History()
    open_log(str(volume / key.run_id / "reported")).read_new(history, utc_now())
    for number in range(EVENTS):
        expected.add(host.event(number))
    end = START + EVENTS * 1_000_000
    assert history.size == EVENTS
    assert history.of(end).account(end) == expected.of(end).account(end)
    storage.close()
