"""Hosts that report to one control plane: real API server, projected tokens, TLS and HTTP."""

import asyncio
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uvloop
from cluster.certificates import make_certificates
from cluster.envtest import apiserver
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.identity import run_id
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to

from bench.process_usage import cpu_seconds, peak_rss_mib
from bench.report_connections import ReportConnection, Server
from bench.table import Section

RUNS: Final = 20
HOSTS: Final = int(os.environ.get("HOSTS", "2000"))
INTERVAL_S: Final = 10.0
ROUNDS: Final = int(os.environ.get("ROUNDS", "4"))
STEPS_PER_INTERVAL: Final = 10
NAMESPACE: Final = "bench"
PARALLEL: Final = 32
Object = dict[str, Any]


@dataclass
class Host:
    """A pod that reports."""

    number: int
    run: str
    token: str
    leads: bool
    sequence: int = 0
    events: list[Event] = field(default_factory=list)
    persisted: int = 0
    connection: ReportConnection | None = None

    def report(self) -> Object:
        """Return the next report."""
        self.sequence += 1
        report: Object = {
            "v": 1,
            "incarnation": f"{self.number:08x}",
            "sequence": self.sequence,
            "sent": time.time(),
            "rank": self.number // RUNS,
            "worldSize": HOSTS // RUNS,
            "host": {"name": f"host-{self.number}"},
            "profiler": {"ports": [9999], "server": "jax", "version": "0.10.2", "tensorflow": False},
            "progress": {"step": self.sequence * STEPS_PER_INTERVAL, "stepTimeSeconds": 1.0, "changed": time.time()},
            "metrics": {"loss": 1.0 / self.sequence},
        }
        if self.leads:
            self._work()
            items = packing.pack(self.events[self.persisted :])
            report |= {"run": {"name": "bench"}, "events": {"first": self.persisted, "items": items}}
        return report

    async def post(self, server: Server) -> int:
        """Send the next report; return the status."""
        self.connection = self.connection or ReportConnection(server, self.number)
        status, answer = await self.connection.post(self.run, self.token, self.report())
        self.persisted = answer.get("persistedEvents", self.persisted)
        return status

    def _work(self) -> None:
        moment = round(time.time() * 1e6)
        for step in range(STEPS_PER_INTERVAL):
            at = moment + step * 1_000_000
            number = self.sequence * STEPS_PER_INTERVAL + step
            self.events += [Event(at, EventCode.STEP_START, number), Event(at + 999_000, EventCode.STEP_END, number)]


@dataclass(frozen=True)
class Phase:
    """Figures of a part of the measurement."""

    latencies_ms: list[float]
    refused: int
    seconds: float
    cpu_seconds: float

    def row(self, title: str, peak_mib: float, reviews: float) -> list[str]:
        """Return the cells of the table."""
        return [
            title,
            f"{len(self.latencies_ms) / self.seconds:.0f}",
            f"{statistics.median(self.latencies_ms):.1f}",
            f"{statistics.quantiles(self.latencies_ms, n=100)[98]:.1f}",
            f"{self.cpu_seconds / self.seconds:.2f}",
            f"{self.cpu_seconds / len(self.latencies_ms) * 1000:.1f}",
            f"{peak_mib:.0f}",
            f"{reviews:.0f}",
            str(self.refused),
        ]


def measure() -> Section:
    """Measure the start of all hosts at once, and then some rounds of reports."""
    load = os.getloadavg()[0]
    rows = uvloop.run(_measure())
    return Section(
        "control-plane",
        f"{HOSTS} hosts that report every {INTERVAL_S:g} s",
        [
            "phase",
            "reports/s",
            "p50, ms",
            "p99, ms",
            "cores",
            "CPU of a report, ms",
            "peak memory, MiB",
            "TokenReviews",
            "refused",
        ],
        rows,
        f"One process that serves the control-plane API, and {HOSTS} clients in another one, on {os.cpu_count()} cores "
        f"(load average {load:.1f} at the start) which the API server and its etcd share. {RUNS} runs; real "
        "kube-apiserver with projected tokens, TLS, gzip, and a journal on the local disk. At the start all hosts open "
        "a connection and report within one interval, so that each needs a TokenReview and the walk to its run. Later "
        "reports need none: the API server gets no request and no write. Latencies are those of the client, whose own "
        "work is included. Goals: 1 core, 256 MiB, p99 ≤ 50 ms after the start.",
    )


async def _measure() -> list[list[str]]:
    with tempfile.TemporaryDirectory() as name, apiserver() as server:
        folder = Path(name)
        files = make_certificates(folder / "pki", hosts=["127.0.0.1"])
        environment = os.environ | {"KUBECONFIG": str(server.kubeconfig)}
        cluster = await ApiClient.connect(environment)
        try:
            hosts = await _hosts(cluster)
        finally:
            await cluster.aclose()
        tls = ssl.create_default_context(cafile=files.ca)
        with _serving(folder, environment) as process:
            assert process.stdout
            assert process.stdin
            port = int(await asyncio.to_thread(process.stdout.readline))
            start = await _round(hosts, process.pid, Server(port, tls))
            rounds = [await _round(hosts, process.pid, Server(port, tls)) for _ in range(ROUNDS)]
            peak_mib = peak_rss_mib(process.pid)
            process.stdin.close()
            reviews = float(await asyncio.to_thread(process.stdout.readline))
        for host in hosts:
            if host.connection:
                host.connection.close()
        steady = Phase(
            [each for one in rounds for each in one.latencies_ms],
            sum(one.refused for one in rounds),
            sum(one.seconds for one in rounds),
            sum(one.cpu_seconds for one in rounds),
        )
        return [start.row("start", peak_mib, reviews), steady.row("reports", peak_mib, 0)]


@contextmanager
def _serving(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.control_plane_server", str(folder)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def _round(hosts: list[Host], pid: int, server: Server) -> Phase:
    """Let every host report once, spread over an interval; the time of connecting counts."""
    begin, cpu = time.perf_counter(), cpu_seconds(pid)
    latencies_ms: list[float] = []
    statuses: list[int] = []

    async def one(host: Host) -> None:
        await asyncio.sleep(INTERVAL_S * host.number / len(hosts))
        start = time.perf_counter()
        statuses.append(await host.post(server))
        latencies_ms.append((time.perf_counter() - start) * 1000)

    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(one(host))
    await asyncio.sleep(max(0.0, begin + INTERVAL_S - time.perf_counter()))
    refused = sum(status != 200 for status in statuses)
    return Phase(latencies_ms, refused, time.perf_counter() - begin, cpu_seconds(pid) - cpu)


async def _hosts(cluster: ApiClient) -> list[Host]:
    """Make the Jobs and pods of all runs, and the tokens of the pods."""
    await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": NAMESPACE}})
    accounts = path_to("", "v1", "serviceaccounts", namespace=NAMESPACE)
    await cluster.create(accounts, {"metadata": {"name": "trainer"}})
    jobs = [await _job(cluster, f"run-{number}") for number in range(RUNS)]
    limit = asyncio.Semaphore(PARALLEL)

    async def make(number: int) -> Host:
        job = jobs[number % RUNS]
        async with limit:
            pod = await _pod(cluster, f"pod-{number}", job)
            bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
            spec = {"audiences": ["mldiagnostics"], "expirationSeconds": 3600, "boundObjectRef": bound}
            made = await cluster.create(f"{accounts}/trainer/token", {"spec": spec})
        created = datetime.fromisoformat(job["metadata"]["creationTimestamp"]).astimezone(UTC)
        run = run_id(cluster="bench", namespace=NAMESPACE, kind="Job", name=job["metadata"]["name"], created=created)
        return Host(number, run, made["status"]["token"], leads=number < RUNS)

    return list(await asyncio.gather(*map(make, range(HOSTS))))


async def _job(cluster: ApiClient, name: str) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": name}, "spec": {"suspend": True, "template": template}}
    return await cluster.create(path_to("batch", "v1", "jobs", namespace=NAMESPACE), body)


async def _pod(cluster: ApiClient, name: str, job: Object) -> Object:
    meta = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
    spec = {"serviceAccountName": "trainer", "nodeName": "node", "containers": [{"name": "c", "image": "i"}]}
    body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
    return await cluster.create(path_to("", "v1", "pods", namespace=NAMESPACE), body)
