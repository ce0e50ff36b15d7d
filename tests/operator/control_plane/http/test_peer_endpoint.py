from __future__ import annotations

import asyncio
import json
import subprocess
from asyncio import to_thread
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from mldiagnostics_operator.control_plane.limits import PEER_CONNECTIONS
from support.cluster.control_planes import make_account, serving
from support.cluster.operating import address, addresses
from support.programs import environments

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.control_planes import Running

pytestmark = pytest.mark.apiserver

RUNS = "/v1/machineLearningRuns"
JOBS, PODS = 4, PEER_CONNECTIONS + 44
PROGRAM = Path(__file__).parents[4] / "e2e/peers/self_hosted.py"


@pytest.fixture(scope="module")
def pod_ip() -> Iterator[str]:
    """An address of this machine that a pod may have."""
    try:
        with address() as ip:
            yield ip
    except (OSError, subprocess.CalledProcessError) as fault:
        pytest.skip(f"pods need an address that does not loop back: {fault}")


@pytest.fixture
async def peer(cluster: ApiClient, namespace: str, tmp_path: Path, pod_ip: str) -> AsyncIterator[Running]:
    """A control plane with the peer's port, whose URL leads there from the pod's address."""
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path, peer_port=0) as running:
        running.peer_url = running.peer_url.replace("127.0.0.1", pod_ip)
        yield running


async def patch(peer: Running, path: str, body: Any) -> tuple[int, Any]:
    async with peer.session.patch(peer.peer_url + path, json=body) as answer:
        return answer.status, await answer.json()


async def test_a_run_is_that_of_the_pod_with_the_address(peer: Running, pod_ip: str) -> None:
    job = await peer.job()
    await peer.pod(owner=job, ip=pod_ip)
    run = peer.run_of(job)
    created = {"logicalId": "uuid-1", "displayName": "theirs", "workload": {"workloadId": "forged"}}
    status, answer = await patch(peer, f"{RUNS}?update_mask=logical_id&allow_missing=true", created)
    assert (status, answer["name"]) == (200, "machineLearningRuns/uuid-1")
    for state, phase in (("STATE_RUNNING", "Active"), ("STATE_FAILED", "Failed")):
        body = {"name": "machineLearningRuns/uuid-1", "workload": {"state": state}}
        assert (await patch(peer, f"{RUNS}/uuid-1?update_mask=workload.state", body))[0] == 200
        view = peer.view(run)
        assert view is not None
        assert (view.phase, view.aliases, view.name) == (phase, ("uuid-1",), "theirs")


async def test_well_formed_requests_never_fail(peer: Running, pod_ip: str) -> None:
    async with peer.session.get(f"{peer.peer_url}/v1/agent-info") as answer:
        assert (answer.status, await answer.json()) == (200, {"cluster_id": "test-cluster"})
    body = {"logicalId": "uuid-1", "workload": {"state": "STATE_FAILED"}}
    await peer.pod("on-the-node", owner=await peer.job("on-the-node"), ip=pod_ip, host_network=True)
    assert (await patch(peer, RUNS, body))[0] == 200
    odd: list[Any] = [
        {},
        {"logicalId": 1, "displayName": [], "workload": "x", "baseBlobPath": {}},
        {"workload": {"state": {}}},
    ]
    for each in odd:
        assert (await patch(peer, f"{RUNS}/a%2Fb", each))[0] == 200
    async with peer.session.post(peer.peer_url + RUNS, json={}) as answer:
        assert answer.status == 200
    assert not list(peer.table.runs())
    assert peer.value("peer_dropped_total", reason="unattributed") == 4
    async with peer.session.patch(peer.peer_url + RUNS, data=b"{") as answer:
        assert answer.status == 400
    # Under pressure the connection is closed: the client survives that, and no status of 400 or above.
    with pytest.raises(aiohttp.ClientConnectionError):
        await flood(peer)


async def test_clients_that_belong_to_no_pod_keep_no_pod_waiting(peer: Running, pod_ip: str) -> None:
    job = await peer.job()
    await peer.pod(owner=job, ip=pod_ip)
    port = int(peer.peer_url.rpartition(":")[2])
    head = f"PATCH {RUNS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{".encode()
    half_sent = list[asyncio.StreamWriter]()
    async with aiohttp.ClientSession() as others:

        async def flooded() -> None:
            for _ in range(100):
                with suppress(aiohttp.ClientError):
                    async with others.patch(f"http://127.0.0.1:{port}{RUNS}", json={"logicalId": "forged"}):
                        pass

        for number in range(PEER_CONNECTIONS + 50):
            local = (f"127.0.0.{2 + number % 50}", 0)
            with suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=local)
                half_sent.append(writer)
                writer.write(head)
        flood_of_requests = asyncio.gather(*(flooded() for _ in range(4)))
        for state in ("STATE_RUNNING", "STATE_SUCCEEDED"):
            assert (await patch(peer, f"{RUNS}/uuid-1", {"workload": {"state": state}}))[0] == 200
        await flood_of_requests
    for writer in half_sent:
        writer.transport.abort()
    view = peer.view(peer.run_of(job))
    assert view is not None
    assert (view.phase, view.aliases) == ("Completed", ("uuid-1",))


@pytest.mark.root
async def test_all_pods_of_large_jobs_start_at_once(cluster: ApiClient, namespace: str, tmp_path: Path) -> None:
    await make_account(cluster, namespace)
    refused = Counter[int]()
    with addresses(PODS) as ips:
        async with serving(cluster, namespace, tmp_path, peer_port=0) as peer:
            jobs = [await peer.job(f"job-{number}") for number in range(JOBS)]
            turns = asyncio.Semaphore(16)

            async def make(number: int) -> None:
                async with turns:
                    await peer.pod(f"pod-{number}", owner=jobs[number % JOBS], ip=ips[number])

            async def start_and_end(number: int) -> None:
                url = f"http://{ips[number]}:{peer.peer_url.rpartition(':')[2]}{RUNS}/uuid-{number % JOBS}"
                own = aiohttp.TCPConnector(local_addr=(ips[number], 0))
                async with aiohttp.ClientSession(connector=own) as session:
                    for state in ("STATE_RUNNING", "STATE_SUCCEEDED"):
                        async with session.patch(url, json={"workload": {"state": state}}) as answer:
                            refused[answer.status] += answer.status != 200

            await asyncio.gather(*map(make, range(PODS)))
            async with asyncio.timeout(240):
                await asyncio.gather(*map(start_and_end, range(PODS)))
            views = [peer.view(peer.run_of(job)) for job in jobs]
    assert +refused == {}
    assert [(view.phase, view.aliases) for view in views if view] == [
        ("Completed", (f"uuid-{number}",)) for number in range(JOBS)
    ]


async def flood(peer: Running) -> None:
    for _ in range(200):
        assert (await patch(peer, RUNS, {}))[0] == 200


@pytest.mark.peers
@pytest.mark.parametrize(("ending", "phase"), [("return", "Completed"), ("raise", "Failed")])
async def test_the_unmodified_client_creates_and_ends_a_run(
    peer: Running, pod_ip: str, ending: str, phase: str
) -> None:
    try:
        python = await to_thread(environments.interpreter, "peer-sdk")
    except environments.Unavailable as error:
        pytest.skip(f"no environment peer-sdk: {error}")
    job = await peer.job()
    await peer.pod(owner=job, ip=pod_ip)
    run = peer.run_of(job)
    result = await to_thread(
        subprocess.run,
        [str(python), str(PROGRAM), ending],
        env={"DIAGON_BASE_URL": peer.peer_url, "DIAGON_AGENT_URL": peer.peer_url, "DIAGON_WORKLOAD_ID": run},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert result.returncode == (ending == "raise"), result.stderr
    client = json.loads(result.stdout.splitlines()[-1])
    view = peer.view(run)
    assert view is not None
    assert (view.phase, view.aliases) == (phase, (client["id"],)), result.stderr
    assert view.name == "theirs"
