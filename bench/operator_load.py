"""Benchmark of the operator: latency with many captures, memory with many objects.

There are a real API server, the operator in a process of its own, and profilers that answer on time. Figures: time from
the applied object to the first RPC with 100 captures in flight; memory and start-up time with 10 000 finished captures
and 10 000 pods that kwok keeps running in the captured namespace.
"""

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import grpc.aio
from cluster.envtest import ApiServer, apiserver
from cluster.tools import tool
from mldiagnostics.capture.messages import SERVICE
from mldiagnostics.capture.wire import fields
from mldiagnostics_api import names
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.definitions import connections, install
from typing_extensions import override

from bench.few_at_once import few_at_once
from bench.process_usage import rss_mb, settled_rss_mb
from bench.profiler_fleet import Fleet
from bench.table import Section

NAMESPACE = "ml"
CAPTURES = connections(NAMESPACE)
PODS = path_to("", "v1", "pods", namespace=NAMESPACE)
SESSION_ID = 6
IN_FLIGHT, CROWD = 100, 10_000
CAPTURE_S = 10
PAUSE_S = 0.05  # so that all of them are in flight together before the first one ends
DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class Load:
    """The measured figures; latencies in seconds, memory in MB (10^6 bytes)."""

    paced_first_rpc_s: list[float]
    """20 captures applied per second, until 100 are in flight."""
    burst_first_rpc_s: list[float]
    """100 captures applied at once."""
    idle_rss_mb: float
    start_over_finished_s: float
    finished_rss_mb: float
    start_over_pods_s: float
    pods_rss_mb: float


class RecordingFleet(Fleet):
    """A fleet that records when the first call of each session arrived."""

    def __init__(self) -> None:
        super().__init__(trace_bytes=0)
        self.arrived_s: dict[str, float] = {}

    @override
    async def profile(self, request: bytes, context: object) -> bytes:
        session = dict(fields(memoryview(request)))[SESSION_ID]
        assert isinstance(session, memoryview)
        self.arrived_s.setdefault(bytes(session).decode(), time.time())
        return await super().profile(request, context)


def measure() -> Section:
    """Run the benchmark; takes a few minutes, most of them to create 20 000 objects."""
    machine_load = os.getloadavg()[0]
    load = asyncio.run(_measure())
    return Section(
        name="operator",
        title=f"The operator: {IN_FLIGHT} captures in flight, {CROWD} finished captures, {CROWD} pods",
        columns=("figure", "measured", "goal"),
        rows=(
            ("applied → first call, 20 applied per second, p50 / p99", _p50_p99(load.paced_first_rpc_s), "p99 ≤ 1 s"),
            ("applied → first call, all applied at once, p50 / p99", _p50_p99(load.burst_first_rpc_s), ""),
            ("memory when idle", f"{load.idle_rss_mb:.0f} MB", ""),
            (f"memory with {CROWD} finished captures", f"{load.finished_rss_mb:.0f} MB", "≤ 150 MB"),
            (f"memory after a capture selected among {CROWD} more pods", f"{load.pods_rss_mb:.0f} MB", "≤ 150 MB"),
            ("start to the first status with the finished captures", f"{load.start_over_finished_s:.1f} s", "≤ 20 s"),
            ("start to the first status with captures and pods", f"{load.start_over_pods_s:.1f} s", "≤ 20 s"),
        ),
        notes=(
            "A real kube-apiserver and etcd, the operator, the profilers and this benchmark share "
            f"{os.cpu_count()} cores ({platform.machine()}, load average {machine_load:.1f} at the start). Every "
            "capture has a pod of its own; the first call is the Profile request that reaches the pod's address. "
            "Pods are kept running by kwok."
        ),
    )


def _p50_p99(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} / {statistics.quantiles(values, n=100)[98]:.2f} s"


def _print(text: str) -> None:
    print(f"... {text}", flush=True)


async def _measure() -> Load:
    with apiserver() as server, local_addresses(IN_FLIGHT) as addresses:
        cluster = await ApiClient.connect({"KUBECONFIG": str(server.kubeconfig)})
        try:
            await install(cluster)
            await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": NAMESPACE}})
            async with _fleet() as (fleet, port):
                _print(f"{IN_FLIGHT} captures in flight")
                async with _operator(cluster, server, port) as (pid, _):
                    idle_rss_mb = rss_mb(pid)
                    await few_at_once(
                        _running_pod(cluster, f"host-{n}", address) for n, address in enumerate(addresses)
                    )
                    paced_s = await _latencies(cluster, fleet, port, addresses, PAUSE_S)
                    burst_s = await _latencies(cluster, fleet, port, addresses, 0)
                _print(f"creating {CROWD} finished captures (a minute or two)")
                await _finished_captures(cluster)
                async with _operator(cluster, server, port) as (pid, over_finished_s):
                    finished_rss_mb = await settled_rss_mb(pid, pause_s=5)
                _print(f"creating {CROWD} pods (a minute or two)")
                with _kwok(server):
                    await _crowd(cluster)
                    async with _operator(cluster, server, port) as (pid, over_pods_s):
                        await _dry_run(cluster, "crowd", {"target": {"selector": {"matchLabels": {"app": "crowd"}}}})
                        pods_rss_mb = await settled_rss_mb(pid, pause_s=5)
        finally:
            await cluster.aclose()
    return Load(paced_s, burst_s, idle_rss_mb, over_finished_s, finished_rss_mb, over_pods_s, pods_rss_mb)


@contextmanager
def local_addresses(count: int) -> Iterator[list[str]]:
    """Add addresses to this machine; the operator does not contact loopback ones.

    They are from the benchmark range of RFC 2544.
    """
    addresses = [f"198.18.7.{n}" for n in range(1, count + 1)]
    try:
        for address in addresses:
            subprocess.run(["ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True)
        yield addresses
    finally:
        for address in addresses:
            subprocess.run(["ip", "address", "delete", f"{address}/32", "dev", "lo"], check=False)


@asynccontextmanager
async def _fleet() -> AsyncIterator[tuple[RecordingFleet, int]]:
    fleet = RecordingFleet()
    methods = {"Profile": fleet.profile, "GetSnapshot": fleet.get_snapshot}
    handlers: dict[str, Any] = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("0.0.0.0:0")
    await server.start()
    try:
        yield fleet, port
    finally:
        await server.stop(None)


@asynccontextmanager
async def _operator(cluster: ApiClient, server: ApiServer, port: int) -> AsyncIterator[tuple[int, float]]:
    """Run the operator; yield its pid and the time until its first final status."""
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.json"
        policy.write_text(
            json.dumps(
                {
                    "allowedPorts": [port],
                    "allowedStorage": {"*": ["volume:///"]},
                    "capturesPerNamespace": IN_FLIGHT,
                    "capturesTotal": IN_FLIGHT,
                }
            )
        )
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "KUBECONFIG": str(server.kubeconfig),
            "MLDIAG_HTTP_PORT": "0",
            "MLDIAG_POLICY_FILE": str(policy),
            "MLDIAG_VOLUME_ROOT": folder,
            "MLDIAG_CLUSTER_NAME": "bench",
        }
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mldiagnostics_operator", env=environ, stdout=asyncio.subprocess.PIPE
        )
        try:
            http_port = await _http_port(process)
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(_drain(process))
                await _until(lambda: _stage(http_port, "leading"), "the operator leads")
                await _dry_run(cluster, f"first-of-{process.pid}", {"podName": "nobody"})
                yield process.pid, time.monotonic() - started
                reading.cancel()
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await asyncio.wait_for(process.wait(), DEADLINE_S)


async def _http_port(process: asyncio.subprocess.Process) -> int:
    assert process.stdout
    async for raw in process.stdout:
        if port := json.loads(raw).get("port"):
            return int(port)
    raise RuntimeError("the operator ended before its probes were available")


async def _drain(process: asyncio.subprocess.Process) -> None:
    assert process.stdout
    async for _ in process.stdout:
        pass


async def _stage(port: int, stage: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz") as response:
        return (await response.text()).strip() == stage


async def _latencies(
    cluster: ApiClient, fleet: RecordingFleet, port: int, addresses: list[str], pause_s: float
) -> list[float]:
    """Apply a capture for each address, `pause_s` apart; return the latencies in seconds."""
    batch = f"load-{pause_s * 1000:.0f}"
    applied_s: dict[str, float] = {}

    async def apply(n: int) -> None:
        await asyncio.sleep(n * pause_s)
        sent_s = time.time()
        made = await cluster.create(CAPTURES, _connection(f"{batch}-{n}", f"host-{n}", port))
        applied_s[f"{batch}-{n}-{made['metadata']['uid'][:8]}"] = sent_s

    async with asyncio.TaskGroup() as group:
        for n in range(len(addresses)):
            group.create_task(apply(n))

    async def all_arrived() -> bool:
        return applied_s.keys() <= fleet.arrived_s.keys()

    await _until(all_arrived, "every capture contacted its host")
    await _until(lambda: _all_finished(cluster), "every capture is finished")
    return [fleet.arrived_s[session] - sent_s for session, sent_s in applied_s.items()]


async def _all_finished(cluster: ApiClient) -> bool:
    phases = await cluster.items(CAPTURES, lambda item: (item.get("status") or {}).get("phase"))
    return all(phase in names.FINISHED_PHASES for phase in phases)


async def _finished_captures(cluster: ApiClient) -> None:
    """Create 10 000 finished captures, each with the results of two hosts."""
    outcome = {"pod": "trainer-0", "uid": "u", "node": "n", "rank": 0, "state": "Captured", "reason": "Captured"}
    status = {"phase": "Succeeded", "message": "2 of 2 captured", "progress": "2/2", "results": [outcome, outcome]}

    async def make(n: int) -> None:
        await cluster.create(CAPTURES, _connection(f"old-{n}", "trainer-0,trainer-1", 9999))
        await cluster.patch(f"{CAPTURES}/old-{n}/status", {"status": status})

    await few_at_once(make(n) for n in range(CROWD))


@contextmanager
def _kwok(server: ApiServer) -> Iterator[None]:
    stages = Path(__file__).parent / "kwok_stages.yaml"
    command = [str(tool("kwok")), f"--kubeconfig={server.kubeconfig}", f"--config={stages}", "--manage-all-nodes=true"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


async def _crowd(cluster: ApiClient) -> None:
    """Create 10 000 pods on one fake node and wait until kwok has them all running."""
    await cluster.create(path_to("", "v1", "nodes"), {"metadata": {"name": "fake", "labels": {"type": "kwok"}}})
    await few_at_once(cluster.create(PODS, _pod(f"crowd-{n}", "fake")) for n in range(CROWD))

    async def all_running() -> bool:
        running = await cluster.items(PODS, lambda _: True, labels="app=crowd", fields="status.phase=Running")
        return len(running) == CROWD

    await _until(all_running, "kwok runs every pod")


async def _dry_run(cluster: ApiClient, name: str, trigger: dict[str, Any]) -> None:
    """Apply a dry run and wait for its final status."""
    capture = _connection(name, "", 9999)
    capture["spec"]["triggerCapture"] = {**trigger, "dryRun": True}
    await cluster.create(CAPTURES, capture)

    async def done() -> bool:
        status = (await cluster.get(f"{CAPTURES}/{name}")).get("status") or {}
        return status.get("phase") in names.FINISHED_PHASES

    await _until(done, f"{name} is planned")


async def _running_pod(cluster: ApiClient, name: str, address: str) -> None:
    await cluster.create(PODS, _pod(name, "host"))
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "train", "ready": True, "restartCount": 0, "image": "i", "imageID": "i", "state": started}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "containerStatuses": [container]}
    await cluster.patch(f"{PODS}/{name}/status", {"status": status})


def _pod(name: str, node: str) -> dict[str, Any]:
    environment = [{"name": f"SETTING_{n}", "value": "x" * 40} for n in range(30)]
    return {
        "metadata": {"name": name, "labels": {"app": name.split("-", maxsplit=1)[0]}},
        "spec": {"nodeName": node, "containers": [{"name": "train", "image": "train", "env": environment}]},
    }


def _connection(name: str, pods: str, port: int) -> dict[str, Any]:
    capture = {
        "podName": pods,
        "capturePort": port,
        "durationSeconds": CAPTURE_S,
        "storageLocation": f"volume:///{name}",
    }
    return {
        "apiVersion": CONNECTIONS.api_version,
        "kind": CONNECTIONS.kind,
        "metadata": {"name": name},
        "spec": {"triggerCapture": capture},
    }


async def _until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            if await condition():
                return
        except Exception as error:  # noqa: BLE001 - retried until the deadline
            problem: object = error
        else:
            problem = "not yet"
        if time.monotonic() > until:
            raise RuntimeError(f"not within {DEADLINE_S:g} s: {what} ({problem})")
        await asyncio.sleep(0.05)
