"""Benchmark of the webhook, a baseline and a peer: reviews over TLS, and memory with a full cache."""

import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from cluster.addons import crd_paths
from cluster.certificates import Certificates, make_certificates
from cluster.envtest import ApiServer, apiserver
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from support.cluster.definitions import DEFINITIONS
from support.cluster.reviews import LABEL, encoded, job, jobset, pod_of, review_of

from bench.process_usage import rss_mb
from bench.table import Section
from bench.webhook_load import Figures, Job

SERVER_CORE, LOAD_CORE = "0", "1"
ROUNDS, ROUND_S, CONNECTIONS = 3, 8.0, 16
PACED_PER_SECOND, PACED_S = 100, 30.0
PEAK_PER_SECOND, PEAK_S, REPLICAS = 430, 60.0, 3
NAMESPACES, WORKLOADS = 1000, 10_000
PARALLEL_WRITES = 32
DEADLINE_S = 120.0
FLOOR, OURS, PEER = "bench.webhook_floor", "mldiagnostics_webhook", "bench.webhook_kopf"
JOBSETS = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace="default")
JOBS = path_to("batch", "v1", "jobs", namespace="default")
PERMISSIONS = path_to("rbac.authorization.k8s.io", "v1", "clusterrolebindings")


@dataclass(frozen=True, slots=True)
class BenchInputs:
    """Inputs of all servers."""

    kubeconfig: Path
    files: Certificates
    mounted: Path
    review: Path


def measure() -> Section:
    """Run all measurements, in about six minutes."""
    machine_load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, apiserver() as server:
        rows = asyncio.run(_measure(server, Path(folder)))
    return Section(
        name="webhook",
        title="Webhook: reviews of a 7 kB pod of a JobSet over TLS",
        columns=(
            "measurement",
            "mldiagnostics",
            "baseline: aiohttp that allows",
            "kopf, patch of the same size",
            "goal",
        ),
        rows=rows,
        notes=(
            f"Median (lowest-highest) of {ROUNDS} alternating rounds of {ROUND_S:g} s, {CONNECTIONS} connections that "
            f"send without pause, per second of CPU time. Each server runs on one core, the load on another "
            f"({os.cpu_count()} cores, {platform.machine()}, load average {machine_load:.1f} at the start); the "
            f"{REPLICAS} replicas share both cores with the load. Our webhook parses, walks Pod → Job → JobSet in its "
            "cache and patches; the baseline parses and allows; kopf adds a patch of the same size without lookups. "
            f"Latencies count from the time when a request was due. The API server is real; of the {WORKLOADS} "
            "workloads, half are JobSets and half are Jobs."
        ),
    )


async def _measure(server: ApiServer, folder: Path) -> Sequence[Sequence[str]]:
    cluster = await ApiClient.connect({"KUBECONFIG": str(server.kubeconfig)})
    try:
        inputs = await _prepare(cluster, server.kubeconfig, folder)
        rates = await _rates(inputs)
        paced = [await _alone(inputs, name, per_second=PACED_PER_SECOND, seconds=PACED_S) for name in (OURS, FLOOR)]
        peak = await _peak(inputs)
        idle_mb, full_mb = await _memory(cluster, inputs)
    finally:
        await cluster.aclose()
    ours, floor, peer = (statistics.median(rates[name]) for name in (OURS, FLOOR, PEER))
    return (
        ("reviews per second of one core", *(_spread(rates[name]) for name in (OURS, FLOOR, PEER)), ""),
        (
            "ours as a multiple of that",
            "",
            f"{ours / floor:.2f}",
            f"{ours / peer:.1f}",
            "≥ 0.6 and ≥ 5",
        ),
        (
            f"p50 / p99 at {PACED_PER_SECOND} a second",
            *(_p50_p99(figures) for figures in paced),
            "",
            "p99 ≤ 5 ms",
        ),
        (
            f"{REPLICAS} replicas, {PEAK_PER_SECOND} a second for {PEAK_S:g} s: answered, p50 / p99",
            _sustained(peak),
            "",
            "",
            f"{PEAK_PER_SECOND}/s sustained",
        ),
        ("memory when idle", f"{idle_mb:.0f} MB", "", "", ""),
        (f"memory with {NAMESPACES} namespaces, {WORKLOADS} workloads", f"{full_mb:.0f} MB", "", "", "≤ 120 MB"),
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


def _p50_p99(figures: Figures) -> str:
    return f"{figures.p50_ms:.1f} / {figures.p99_ms:.1f} ms"


def _sustained(peak: Figures) -> str:
    faults = f"{peak.denied} not allowed, {peak.answers - peak.patched} not injected"
    return f"{peak.answers / peak.seconds:.0f}/s, {_p50_p99(peak)}, {faults}"


def _say(text: str) -> None:
    print(f"... {text}", flush=True)


async def _prepare(cluster: ApiClient, kubeconfig: Path, folder: Path) -> BenchInputs:
    """Create the workload of the reviewed pod, and a certificate for the servers."""
    await _define(cluster)
    top = await cluster.create(JOBSETS, _jobset("trainer", labels=LABEL))
    part = await cluster.create(JOBS, _job("trainer-workers-0", top))
    part |= {"apiVersion": "batch/v1", "kind": "Job"}
    review = folder / "review.json"
    review.write_bytes(encoded(review_of(pod_of(part, namespace="default"), namespace="default")))
    files = make_certificates(folder / "pki", hosts=["127.0.0.1"])
    mounted = folder / "mounted"
    mounted.mkdir()
    (mounted / "tls.crt").write_bytes(files.certificate("apiserver").read_bytes())
    (mounted / "tls.key").write_bytes(files.key("apiserver").read_bytes())
    return BenchInputs(kubeconfig, files, mounted, review)


async def _define(cluster: ApiClient) -> None:
    (path,) = (path for path in crd_paths("jobset") if path.stem.endswith("_jobsets"))
    await cluster.create(DEFINITIONS, yaml.load(path.read_text(), yaml.CSafeLoader))
    end = time.monotonic() + DEADLINE_S
    while True:
        try:
            await cluster.get(JOBSETS)
        except ClusterError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)
        else:
            return


def _jobset(name: str, labels: dict[str, str]) -> dict[str, Any]:
    part = {"name": "workers", "replicas": 1, "template": {"spec": {"template": {"spec": _spec()}}}}
    made = jobset(name, namespace="default", labels=labels, spec={"replicatedJobs": [part]})
    return _to_create(made)


def _job(name: str, owner: dict[str, Any]) -> dict[str, Any]:
    owner = {**owner, "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    marks = pod_of(None)["metadata"]["labels"]
    spec = {"template": {"spec": _spec()}}
    made = job(owner, name, namespace="default", labels=marks, spec=spec)
    made["metadata"]["annotations"] = marks
    return _to_create(made)


def _spec() -> dict[str, Any]:
    return {"restartPolicy": "Never", "containers": [{"name": "train", "image": "train"}]}


def _to_create(made: dict[str, Any]) -> dict[str, Any]:
    for given in ("uid", "creationTimestamp"):
        del made["metadata"][given]
    return made


async def _rates(inputs: BenchInputs) -> dict[str, list[float]]:
    """Measure all servers in each round, so that other work on the machine slows all of them equally."""
    rates: dict[str, list[float]] = {OURS: [], FLOOR: [], PEER: []}
    for round_ in range(ROUNDS):
        for name, values in rates.items():
            _say(f"round {round_ + 1} of {ROUNDS}: {name}")
            figures = await _alone(inputs, name, per_second=0, seconds=ROUND_S)
            if figures.denied or (name != FLOOR and figures.patched < figures.answers):
                raise RuntimeError(f"{name}: {figures.denied} denied, {figures.patched} of {figures.answers} patched")
            values.append(figures.answers / figures.cpu_seconds)
    return rates


async def _alone(inputs: BenchInputs, name: str, *, per_second: float, seconds: float) -> Figures:
    """Measure one server on its own core."""
    async with _server(inputs, name, core=SERVER_CORE) as server:
        return await _load(inputs, [server], per_second=per_second, seconds=seconds)


async def _peak(inputs: BenchInputs) -> Figures:
    """Measure three replicas at the rate of pod creations in a large cluster."""
    _say(f"{REPLICAS} replicas at {PEAK_PER_SECOND} a second for {PEAK_S:g} s")
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(_server(inputs, OURS)) for _ in range(REPLICAS)]
        return await _load(inputs, servers, per_second=PEAK_PER_SECOND, seconds=PEAK_S)


async def _memory(cluster: ApiClient, inputs: BenchInputs) -> tuple[float, float]:
    """Return the resident memory of a replica in MB, with an empty and a full cluster."""
    async with _server(inputs, OURS) as (idle, _):
        idle_mb = await _settled(idle)
    _say(f"creating {NAMESPACES} namespaces and {WORKLOADS} workloads")
    spaces = path_to("", "v1", "namespaces")
    await _all(cluster.create(spaces, {"metadata": {"name": f"team-{n}", "labels": LABEL}}) for n in range(NAMESPACES))
    await _all(_workload(cluster, n) for n in range(WORKLOADS // 2))
    async with _server(inputs, OURS) as (full, _):
        return idle_mb, await _settled(full)


async def _workload(cluster: ApiClient, number: int) -> None:
    """Create a JobSet with ten labels, and its Job with the controller's labels."""
    labels = {f"team.example.com/label-{n}": f"value-{n}-of-{number}" for n in range(10)}
    top = await cluster.create(JOBSETS, _jobset(f"run-{number}", labels=LABEL | labels))
    await cluster.create(JOBS, _job(f"run-{number}-workers-0", top))


async def _settled(pid: int) -> float:
    """Return the resident memory in MB when it grows by less than 1 MB in five seconds."""
    before = 0.0
    while (now := rss_mb(pid)) - before >= 1:
        before = now
        await asyncio.sleep(5)
    return now


@asynccontextmanager
async def _server(inputs: BenchInputs, module: str, *, core: str = "0-64") -> AsyncIterator[tuple[int, int]]:
    """Run a server while the block runs; yield its pid and port when it answers."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "KUBECONFIG": str(inputs.kubeconfig),
        "MLDIAG_CLUSTER_NAME": "bench",
        "MLDIAG_PORT": "0",
        "MLDIAG_HTTP_PORT": "0",
        "MLDIAG_CERTIFICATE_FOLDER": str(inputs.mounted),
    }
    pinned = ["taskset", "-c", core] if core == SERVER_CORE else []
    command = [*pinned, sys.executable, "-m", module, str(inputs.mounted)]
    process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=asyncio.subprocess.PIPE)
    try:
        ports = await asyncio.wait_for(
            _ports(process, {"port", "http_port"} if module == OURS else {"port"}), DEADLINE_S
        )
        if module == OURS:
            await _until_ready(ports["http_port"])
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_drain(process))
            await _until_answers(ports["port"])
            yield process.pid, ports["port"]
            reading.cancel()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _ports(process: asyncio.subprocess.Process, wanted: set[str]) -> dict[str, int]:
    assert process.stdout
    ports: dict[str, int] = {}
    async for raw in process.stdout:
        line = json.loads(raw)
        ports |= {key: line[key] for key in wanted & line.keys()}
        if ports.keys() == wanted:
            return ports
    raise RuntimeError("the server exited before it logged its ports")


async def _drain(process: asyncio.subprocess.Process) -> None:
    assert process.stdout
    async for _ in process.stdout:
        pass


async def _until_ready(http_port: int) -> None:
    async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://127.0.0.1:{http_port}/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)


async def _until_answers(port: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.1)


async def _load(inputs: BenchInputs, servers: list[tuple[int, int]], *, per_second: float, seconds: float) -> Figures:
    order = Job(
        ports=[port for _, port in servers],
        pids=[pid for pid, _ in servers],
        ca=str(inputs.files.ca),
        body=str(inputs.review),
        connections=CONNECTIONS,
        seconds=seconds,
        per_second=per_second,
    )
    fields = {name: getattr(order, name) for name in Job.__slots__}
    command = ["taskset", "-c", LOAD_CORE, sys.executable, "-m", "bench.webhook_load", json.dumps(fields)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the load generator exited with {process.returncode}")
    return Figures(**json.loads(output))


async def _all(work: Iterable[Coroutine[Any, Any, Any]]) -> None:
    limit = asyncio.Semaphore(PARALLEL_WRITES)

    async def one(item: Coroutine[Any, Any, Any]) -> None:
        async with limit:
            await item

    async with asyncio.TaskGroup() as group:
        for item in work:
            group.create_task(one(item))
