"""Hostile reports at a control plane that has the chart's memory limit; `make fuzz-reports` sends 100 000."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import statistics
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cluster.certificates import make_certificates
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.control_planes import ACCOUNT, DEADLINE_S, make_account
from support.cluster.hostile_reports import hostile_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

BODIES = int(os.environ.get("MLDIAG_FUZZ_BODIES", "250"))
SEED = int(os.environ.get("MLDIAG_FUZZ_SEED", "1"))
PARALLEL = 8
RUNS = 400
LONGEST_CALLBACK_MS = 50 if "MLDIAG_FUZZ_BODIES" in os.environ else None
"""On a machine of its own."""
LONGEST_CALLBACK = 3
"""Times a body of the largest size is parsed; one hostile body held the loop for more than fifty."""
OUTLIERS = 2
"""Callbacks that may be longer: a virtual machine counts the time for which its host stops it."""
CLOSED = 0
"""The status of a request whose connection was closed before an answer."""


@dataclass
class Client:
    """An account outside the cluster that reports runs of any id."""

    session: aiohttp.ClientSession
    url: str
    token: str
    latencies_ms: list[float] = field(default_factory=list)

    async def post(self, run: str, content: bytes, encoding: str = "") -> int:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        headers |= {"Content-Encoding": encoding} if encoding else {}
        begin = time.perf_counter()
        async with self.session.post(f"{self.url}/v1/runs/{run}/reports", data=content, headers=headers) as answer:
            await answer.read()
            self.latencies_ms.append((time.perf_counter() - begin) * 1000)
            return answer.status

    async def post_first(self, run: str, content: bytes) -> None:
        """Report until the token was reviewed, which has a deadline."""
        async with asyncio.timeout(DEADLINE_S):
            while await self.post(run, content) != 200:  # noqa: ASYNC110 - a request
                await asyncio.sleep(0.5)
        self.latencies_ms.clear()


class Program:
    """A control plane in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.port = 0

    async def line(self) -> Any:
        assert self._process.stdout
        async with asyncio.timeout(DEADLINE_S):
            text = await self._process.stdout.readline()
        assert text, f"the process ended with status {await self._process.wait()}"
        return json.loads(text)

    async def figures(self) -> dict[str, Any]:
        """Return the figures of its run, and end it."""
        assert self._process.stdin
        self._process.stdin.close()
        figures: dict[str, Any] = await self.line()
        return figures


@asynccontextmanager
async def limited(folder: Path, api_server: ApiServer) -> AsyncIterator[Program]:
    environ = os.environ | {"KUBECONFIG": str(api_server.kubeconfig)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.cluster.limited_control_plane", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    program = Program(process)
    try:
        program.port = await program.line()
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def token_of(cluster: ApiClient, namespace: str) -> str:
    path = path_to("", "v1", "serviceaccounts", namespace=namespace, name=ACCOUNT, sub="token")
    spec = {"audiences": ["mldiagnostics"], "expirationSeconds": 36_000}
    made = await cluster.create(path, {"spec": spec})
    return str(made["status"]["token"])


def honest(sequence: int) -> bytes:
    report = {"v": 1, "incarnation": "00000001", "sequence": sequence, "sent": 1.0, "rank": 0, "run": {"name": "r"}}
    items = [[1_790_000_000_000_000, 2, 0, 0, ""], *[1_000_000] * 20]
    return json.dumps(report | {"progress": {"step": sequence}, "events": {"items": items}}).encode()


async def test_no_report_stops_the_process_or_the_reports_of_others(
    admin: ApiClient, api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    other = f"{namespace}-victim"
    await admin.create(path_to("", "v1", "namespaces"), {"metadata": {"name": other}})
    for each in (namespace, other):
        await make_account(admin, each)
    files = make_certificates(tmp_path / "pki", hosts=["127.0.0.1"])
    trust, dice = ssl.create_default_context(cafile=files.ca), Random(SEED)
    statuses, sent = dict[int, int](), 0
    async with (
        limited(tmp_path, api_server) as program,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as hostile_session,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
    ):
        url = f"https://127.0.0.1:{program.port}"
        attacker = Client(hostile_session, url, await token_of(admin, namespace))
        victim = Client(session, url, await token_of(admin, other))
        for each in (attacker, victim):
            await each.post_first("honest", honest(1))
        making = asyncio.Lock()

        async def attack() -> None:
            nonlocal sent
            while sent < BODIES:
                sent += 1
                async with making:  # in a thread: this loop sends bodies, which have a deadline
                    run, body = f"run-{dice.randrange(RUNS)}", await asyncio.to_thread(hostile_body, dice, sent)
                try:
                    status = await attacker.post(run, *body)
                except aiohttp.ClientConnectionError:
                    status = CLOSED
                statuses[status] = statuses.get(status, 0) + 1

        attacking = asyncio.gather(*(attack() for _ in range(PARALLEL)))
        reports = 1
        while not attacking.done():
            reports += 1
            assert await victim.post("honest", honest(reports)) == 200
            await asyncio.wait({attacking}, timeout=0.2)
        await attacking
        figures = await program.figures()
    disk = sum(file.stat().st_size for file in (tmp_path / "volume").rglob("*") if file.is_file())
    latency = statistics.quantiles(victim.latencies_ms, n=20) if len(victim.latencies_ms) > 1 else [0.0] * 19
    print(
        json.dumps(
            figures
            | {"bodies": sent, "statuses": dict(sorted(statuses.items())), "disk_mib": disk // 2**20}
            | {"victim_ms": {"p50": latency[9], "p95": latency[18], "max": max(victim.latencies_ms)}}
        )
    )
    assert sum(statuses.values()) == sent
    assert not {status for status in statuses if status >= 500}
    assert figures["longest_callbacks"][OUTLIERS][0] <= LONGEST_CALLBACK, figures["longest_callbacks"]
    if LONGEST_CALLBACK_MS:
        assert figures["longest_callback_ms"] <= LONGEST_CALLBACK_MS
    assert figures["peak_mib"] < figures["limit_mib"]
