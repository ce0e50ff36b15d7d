"""A fleet of runs that reports to one operator: real API server, TLS, tokens, and the chart's memory limit."""

import asyncio
import os
import platform
import resource
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import uvloop
from cluster.certificates import Certificates, make_certificates
from cluster.envtest import ApiServer, apiserver
from cluster.ports import free_port, until_open
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.definitions import install

from bench.few_at_once import few_at_once
from bench.fleet_replay import HOSTS, LIMIT, STEP_S, document
from bench.process_usage import CpuUse, peak_rss_mib
from bench.report_connections import ReportConnection, Server
from bench.table import Section

FLEET: Final = int(os.environ.get("RUNS", "10000"))
NAMESPACES: Final = 20
PROCESSES_OF_TOKEN: Final = 8
"""As in a pod with eight processes."""
STARTS_PER_S: Final = 150
MEASURED_S: Final = float(os.environ.get("SECONDS", "300"))
ENDS_PER_S: Final = 1.0
DEADLINE_S: Final = 120.0
STARTED_S: Final = 900.0
"""Most time until each run has a status."""
SETTLED_S: Final = 60.0
"""From then on to the measurement."""
WATCH_DELAY_S: Final = 40.0
"""The watch of this process comes late, as its event loop is busy; times are those of the API server."""
Object = dict[str, Any]


@dataclass
class Member:
    """One run of the fleet, and the times at which its status was written."""

    namespace: str
    run: str
    tokens: list[str]
    connections: list[ReportConnection]
    begin: float = field(default_factory=time.time)
    sequences: list[int] = field(default_factory=lambda: [0] * HOSTS)
    events: list[Event] = field(default_factory=list)
    persisted: int = 0
    ending: float = 0.0
    """When its end was reported first."""
    written: list[float] = field(default_factory=list)
    answered_after_s: float = 0.0
    """From its end to the last answer to its reports."""
    ended_after_s: float = 0.0

    def report(self, host: int) -> Object:
        """Return the next report of a host."""
        self.sequences[host] += 1
        now = time.time()
        step = int((now - self.begin) / STEP_S)
        incarnation, sequence = f"{int(self.run, 16) * HOSTS + host:08x}", self.sequences[host]
        report = document(name=self.run, incarnation=incarnation, host=host, sequence=sequence, now=now, step=step) | {
            "phase": "Completed" if self.ending else "Active"
        }
        if host == 0:
            self._work(step)
            items = packing.pack(self.events[self.persisted :])
            report |= {"events": {"first": self.persisted, "items": items}}
        return report

    def _work(self, step: int) -> None:
        for number in range(len(self.events) // 2, step):
            at = round((self.begin + number * STEP_S) * 1e6)
            self.events += [Event(at, EventCode.STEP_START, number), Event(at + 900_000, EventCode.STEP_END, number)]


class Fleet:
    """All runs, with the figures of their reports and statuses."""

    def __init__(self, members: list[Member]) -> None:
        self.members = members
        self.by_run = {(member.namespace, member.run): member for member in members}
        self.latencies_ms: list[float] = []
        self.refused = 0
        self.intervals_s: set[float] = set()
        self._unrecorded = set(self.by_run)
        self._recorded = asyncio.Event()

    async def post(self, member: Member, host: int) -> float:
        """Send the next report of a host; return the seconds until the one after it."""
        begin = time.perf_counter()
        status, answer = await member.connections[host].post(member.run, member.tokens[host], member.report(host))
        self.latencies_ms.append((time.perf_counter() - begin) * 1000)
        self.refused += status != 200
        if host == 0:
            member.persisted = answer.get("persistedEvents", member.persisted)
        return float(answer.get("intervalSeconds", 10.0))

    async def report(self, member: Member, host: int, start_s: float) -> None:
        """Report a host until its run ends."""
        await asyncio.sleep(start_s)
        member.begin = time.time()
        while not member.ending:
            begin = time.perf_counter()
            interval_s = await self.post(member, host)
            self.intervals_s.add(interval_s)
            await asyncio.sleep(max(0.0, begin + interval_s - time.perf_counter()))

    async def end(self, member: Member) -> None:
        """Report the end of a run from all of its hosts, as SDKs do at once."""
        member.ending = time.time()
        async with asyncio.TaskGroup() as group:
            for host in range(HOSTS):
                group.create_task(self.post(member, host))
        member.answered_after_s = time.time() - member.ending

    async def follow(self, cluster: ApiClient) -> None:
        """Note every status that is written, until cancelled."""
        while True:
            version = ""
            async for page in cluster.pages(path_to(*RUNS.gvr)):
                for item in page[0]:
                    self.note(item)
                version = page[1]
            with suppress(Exception):
                async for event in cluster.watch(path_to(*RUNS.gvr), version):
                    self.note(event.get("object") or {})

    async def until_recorded(self, deadline_s: float) -> None:
        """Wait until the status of each run was written."""
        async with asyncio.timeout(deadline_s):
            await self._recorded.wait()

    def note(self, item: Object) -> None:
        """Note a run as the API server has it."""
        spec, status = item.get("spec") or {}, item.get("status") or {}
        member = self.by_run.get((item.get("metadata", {}).get("namespace", ""), spec.get("runId", "")))
        if member is None or not status:
            return
        written = _written(item)
        member.written.append(written)
        self._unrecorded.discard((member.namespace, member.run))
        if not self._unrecorded:
            self._recorded.set()
        if member.ending and not member.ended_after_s and status.get("phase") == "Completed":
            member.ended_after_s = min(written, _completed(status)) - member.ending


def measure() -> Section:
    """Measure the fleet; takes ten minutes, half of them until all runs have started."""
    load = os.getloadavg()[0]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # also for connections that the server has closed
    rows = uvloop.run(_measure())
    return Section(
        "fleet",
        f"A fleet of {FLEET} runs of {HOSTS} hosts",
        ("figure", "measured", "goal"),
        rows,
        f"A real kube-apiserver and etcd, the operator, {FLEET * HOSTS} clients and a watch of all MLRuns share "
        f"{os.cpu_count()} cores ({platform.machine()}, load average {load:.1f} at the start). The operator has the "
        f"bounds of the chart's default memory limit, {LIMIT // 2**20} MiB. Each host has a TLS connection of its own, "
        f"which it opens again when it was closed; each run a step a second, ten metrics, twenty configurations and "
        f"goodput events; {PROCESSES_OF_TOKEN} hosts share a token, in {NAMESPACES} namespaces. {MEASURED_S:g} s are "
        f"measured from {SETTLED_S:g} s after the status of the last run was written first; one run a second ends. "
        "Writes have the time of the API server, rounded up to a second. "
        "`python -m bench.fleet_replay RUNS ROUNDS` replays an hour without the network.",
    )


async def _measure() -> list[tuple[str, str, str]]:
    with tempfile.TemporaryDirectory() as name, apiserver() as server:
        folder = Path(name)
        files = make_certificates(folder / "pki", hosts=["127.0.0.1"])
        cluster = await ApiClient.connect({"KUBECONFIG": str(server.kubeconfig)})
        try:
            for definition in (CONNECTIONS, RUNS):
                await install(cluster, definition)
            tokens = await _tokens(cluster)
            async with _operator(folder, files, server) as (pid, port):
                to = Server(port, ssl.create_default_context(cafile=files.ca))
                pids = {"operator": pid, **server.pids, "clients": os.getpid()}
                return await _figures(cluster, Fleet(_members(tokens, to)), pids)
        finally:
            await cluster.aclose()


async def _figures(cluster: ApiClient, fleet: Fleet, pids: dict[str, int]) -> list[tuple[str, str, str]]:
    start_s = FLEET * HOSTS / STARTS_PER_S
    async with asyncio.TaskGroup() as group:
        following = group.create_task(fleet.follow(cluster))
        reporting = [
            group.create_task(fleet.report(member, host, start_s * number / FLEET))
            for number, member in enumerate(fleet.members)
            for host in range(HOSTS)
        ]
        started = time.time()
        await fleet.until_recorded(STARTED_S)
        recorded_s = time.time() - started
        print(f"... the status of all {FLEET} runs was written after {recorded_s:.0f} s", flush=True)
        await asyncio.sleep(SETTLED_S)
        fleet.latencies_ms.clear()
        refused_at_start, fleet.refused = fleet.refused, 0
        begin, cpu, ending = time.time(), CpuUse(pids), list[asyncio.Task[None]]()
        for number in range(int(MEASURED_S * ENDS_PER_S)):
            await asyncio.sleep(max(0.0, begin + number / ENDS_PER_S - time.time()))
            ending.append(group.create_task(fleet.end(fleet.members[number * 7 % FLEET])))
        end, reports = time.time(), len(fleet.latencies_ms)
        cores = cpu.cores()
        await asyncio.sleep(WATCH_DELAY_S)
        for task in (following, *reporting, *ending):
            task.cancel()
    for member in fleet.members:
        for connection in member.connections:
            connection.close()
    ages_s = sorted(age for member in fleet.members if not member.ending for age in _ages(member.written, begin, end))
    ended = [member for member in fleet.members if member.ending]
    answers_s = [member.answered_after_s for member in ended if member.answered_after_s]
    ends_s = [member.ended_after_s for member in ended if member.ended_after_s]
    latency = statistics.quantiles(fleet.latencies_ms, n=100)
    peak_mib = peak_rss_mib(pids["operator"])
    writes = sum(len(_between(member.written, begin, end)) for member in fleet.members)
    return [
        ("start of the first run → status of all", f"{recorded_s:.0f} s", ""),
        ("reports a second", f"{reports / (end - begin):.0f}", ""),
        ("seconds between two reports of a host", f"{max(fleet.intervals_s):g}", ""),
        ("report, p50 / p99", f"{latency[49]:.0f} / {latency[98]:.0f} ms", ""),
        ("reports refused at the start / afterwards", f"{refused_at_start} / {fleet.refused}", "0 / 0"),
        ("statuses written a second", f"{writes / (end - begin):.0f}", ""),
        ("status of an active run: age, p99 / longest", f"{_share(ages_s, 0.99):.0f} / {ages_s[-1]:.0f} s", "≤ 60 s"),
        (
            "end of a run → its last answer, p50 / p99",
            f"{_share(answers_s, 0.5):.2f} / {_share(answers_s, 0.99):.2f} s",
            "",
        ),
        ("end of a run → its phase, p50 / p99", f"{_share(ends_s, 0.5):.2f} / {_share(ends_s, 0.99):.2f} s", "≤ 2 s"),
        ("ends without a phase", f"{len(ended) - len(ends_s)} of {len(ended)}", "0"),
        (f"cores of {', '.join(cores)}", ", ".join(f"{each:.2f}" for each in cores.values()), ""),
        ("peak of its memory", f"{peak_mib:.0f} MiB, {peak_mib * 2**20 / LIMIT:.0%} of the limit", "≤ 60 %"),
    ]


def _written(item: Object) -> float:
    """Return the end of the second in which a status was written last, by the clock of the API server."""
    entries = item["metadata"].get("managedFields") or []
    times = [entry["time"] for entry in entries if entry.get("subresource") == "status"]
    return max((datetime.fromisoformat(each).timestamp() + 1 for each in times), default=0.0)


def _completed(status: Object) -> float:
    """Return the end of the second in which the run was completed; a list shows later writes only."""
    times = [each["lastTransitionTime"] for each in status.get("conditions", ()) if each["type"] == "Complete"]
    return max((datetime.fromisoformat(each).timestamp() + 1 for each in times), default=float("inf"))


def _ages(written: Iterable[float], begin: float, end: float) -> list[float]:
    """Return the times between two writes, from the last one before the measurement to its end."""
    last = max((each for each in written if each <= begin), default=begin)
    moments = [last, *sorted(_between(written, begin, end)), end]
    return [after - before for before, after in pairwise(moments)]


def _between(written: Iterable[float], begin: float, end: float) -> set[float]:
    """Return the writes in a time; each is noted again when a watch starts anew."""
    return {each for each in written if begin < each < end}


def _share(values: Iterable[float], share: float) -> float:
    """Return a quantile."""
    ordered = sorted(values) or [float("nan")]
    return ordered[round(share * (len(ordered) - 1))]


def _members(tokens: dict[str, list[str]], server: Server) -> list[Member]:
    """Return the runs, spread over the namespaces."""
    members = []
    for number in range(FLEET):
        namespace = f"team-{number % NAMESPACES}"
        own = tokens[namespace]
        hosts = [number // NAMESPACES * HOSTS + host for host in range(HOSTS)]
        connections = [ReportConnection(server, number * HOSTS + host) for host in range(HOSTS)]
        members.append(Member(namespace, f"{number:x}", [own[each % len(own)] for each in hosts], connections))
    return members


async def _tokens(cluster: ApiClient) -> dict[str, list[str]]:
    """Make the namespaces, and tokens for reports of their runs."""
    tokens: dict[str, list[str]] = {}
    each = -(-FLEET * HOSTS // NAMESPACES // PROCESSES_OF_TOKEN)
    spec = {"audiences": ["mldiagnostics"], "expirationSeconds": 36_000}
    for number in range(NAMESPACES):
        namespace = f"team-{number}"
        await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": namespace}})
        accounts = path_to("", "v1", "serviceaccounts", namespace=namespace)
        await cluster.create(accounts, {"metadata": {"name": "trainer"}})
        made = tokens[namespace] = []

        async def make(path: str, made: list[str]) -> None:
            made.append(str((await cluster.create(path, {"spec": spec}))["status"]["token"]))

        await few_at_once(make(f"{accounts}/trainer/token", made) for _ in range(each))
    return tokens


@asynccontextmanager
async def _operator(folder: Path, files: Certificates, server: ApiServer) -> AsyncIterator[tuple[int, int]]:
    """Run the operator; yield its pid, and the port of its control plane."""
    certificate = files.mount("apiserver", folder / "certificate")
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KUBECONFIG": str(server.kubeconfig),
        "MLDIAG_HTTP_PORT": "0",
        "MLDIAG_VOLUME_ROOT": str(folder / "volume"),
        "MLDIAG_CLUSTER_NAME": "bench",
        "MLDIAG_MEMORY_LIMIT": str(LIMIT),
        "MLDIAG_CONTROL_PLANE": "true",
        "MLDIAG_CONTROL_PLANE_PORT": str(port),
        "MLDIAG_CONTROL_PLANE_CERTIFICATE_FOLDER": str(certificate),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "mldiagnostics_operator", env=environ)
    try:
        await until_open(port, deadline_s=DEADLINE_S)
        yield process.pid, port
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), DEADLINE_S)
