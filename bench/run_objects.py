"""Benchmark of runs: 10 000 objects in etcd, and the time from a change of a workload to the status of its run."""

import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cluster.envtest import ApiServer, apiserver
from mldiagnostics.identity import run_id
from mldiagnostics_api.resources import CONNECTIONS, RUNS
from mldiagnostics_api.runs.names import run_name
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_operator.runs.run import run_manifest
from mldiagnostics_operator.runs.status.write_rate import BURST, STATUS_S, WRITES_PER_S
from support.cluster.definitions import install

from bench.few_at_once import few_at_once
from bench.process_usage import cpu_seconds, rss_mb, settled_rss_mb
from bench.table import Section

NAMESPACE: Final = "ml"
CROWD: Final = int(os.environ.get("CROWD", "10000"))
CHANGES: Final = int(os.environ.get("CHANGES", "100"))
ACTIVE_IN: Final = 10
"""One of so many old runs is active."""
RUN_PATH: Final = path_to(*RUNS.gvr, namespace=NAMESPACE)
JOB_PATH: Final = path_to("batch", "v1", "jobs", namespace=NAMESPACE)
SETTLE_S: Final = 15.0
DEADLINE_S: Final = 600.0
Object = dict[str, Any]


@dataclass(frozen=True)
class Figures:
    """The measured figures."""

    idle_rss_mb: float
    start_s: float
    start_cpu_s: float
    crowd_rss_mb: float
    changes_s: list[float]
    burst_s: float


def measure() -> Section:
    """Run the benchmark; takes a few minutes, most of them to create the objects."""
    load = os.getloadavg()[0]
    figures = asyncio.run(_measure())
    changes = f"{statistics.median(figures.changes_s):.2f} / {statistics.quantiles(figures.changes_s, n=100)[98]:.2f} s"
    return Section(
        "mlruns",
        f"Runs: {CROWD} objects in etcd",
        ("figure", "measured", "goal"),
        (
            ("memory without runs", f"{figures.idle_rss_mb:.0f} MB", ""),
            (f"memory with {CROWD} runs", f"{figures.crowd_rss_mb:.0f} MB", "≤ 200 MB"),
            (f"start to the status of a new run with {CROWD} runs", f"{figures.start_s:.1f} s", "≤ 30 s"),
            ("processor time of that start", f"{figures.start_cpu_s:.1f} s", ""),
            ("change of a workload's phase → status, one by one, p50 / p99", changes, "p99 ≤ 2 s"),
            (f"{CHANGES} changes at once → writes of statuses", f"{CHANGES / figures.burst_s:.0f} /s", _writes_goal()),
        ),
        f"A real kube-apiserver and etcd, the operator with its control plane, and this benchmark share "
        f"{os.cpu_count()} cores ({platform.machine()}, load average {load:.1f} at the start). Every tenth run is "
        "active, the others have finished; the changes are those of Jobs that the operator follows.",
    )


def _writes_goal() -> str:
    """Return the rate that the limit allows: that of the active runs, after a burst."""
    rate = WRITES_PER_S + (CROWD / ACTIVE_IN + CHANGES) / STATUS_S
    return f"≤ {CHANGES * rate / (CHANGES - BURST):.0f} /s"


async def _measure() -> Figures:
    with apiserver() as server:
        cluster = await ApiClient.connect({"KUBECONFIG": str(server.kubeconfig)})
        try:
            await install(cluster, CONNECTIONS)
            await install(cluster, RUNS)
            await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": NAMESPACE}})
            async with _operator(cluster, server, "first") as (pid, _, _):
                idle_rss_mb = await settled_rss_mb(pid, pause_s=SETTLE_S)
            await few_at_once(_old_run(cluster, number) for number in range(CROWD))
            async with _operator(cluster, server, "second") as (pid, start_s, start_cpu_s):
                crowd_rss_mb = await settled_rss_mb(pid, pause_s=SETTLE_S)
                names = [await _new_run(cluster, f"job-{number}") for number in range(CHANGES)]
                for name in names:
                    await _until_phase(cluster, name, "Pending")
                changes_s = [await _change(cluster, f"job-{n}", name) for n, name in enumerate(names)]
                await asyncio.sleep(SETTLE_S)
                crowd_rss_mb = max(crowd_rss_mb, rss_mb(pid))
                begin = time.perf_counter()
                await few_at_once(_finish(cluster, f"job-{number}") for number in range(CHANGES))
                await few_at_once(_until_phase(cluster, name, "Completed") for name in names)
                burst_s = time.perf_counter() - begin
        finally:
            await cluster.aclose()
    return Figures(idle_rss_mb, start_s, start_cpu_s, crowd_rss_mb, changes_s, burst_s)


@asynccontextmanager
async def _operator(cluster: ApiClient, server: ApiServer, job: str) -> AsyncIterator[tuple[int, float, float]]:
    """Run the operator; yield its pid, and time and processor time until the run of a new Job has a status."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "KUBECONFIG": str(server.kubeconfig),
            "MLDIAG_HTTP_PORT": "0",
            "MLDIAG_VOLUME_ROOT": folder,
            "MLDIAG_CLUSTER_NAME": "bench",
            "MLDIAG_CONTROL_PLANE": "true",
            "MLDIAG_CONTROL_PLANE_PORT": "0",
        }
        begin = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mldiagnostics_operator", env=environ, stdout=asyncio.subprocess.DEVNULL
        )
        try:
            await _until_phase(cluster, await _new_run(cluster, job), "Pending")
            yield process.pid, time.perf_counter() - begin, cpu_seconds(process.pid)
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await asyncio.wait_for(process.wait(), DEADLINE_S)


async def _new_run(cluster: ApiClient, job: str) -> str:
    """Create a Job that is opted in; return the name of its run."""
    identity, _ = await _new_job(cluster, job)
    return run_name(job, identity)


async def _new_job(cluster: ApiClient, job: str) -> tuple[str, str]:
    """Create a Job that is opted in; return the id of its run and its uid."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    metadata = {"name": job, "labels": {"managed-mldiagnostics-gke": "true"}}
    made = await cluster.create(JOB_PATH, {"metadata": metadata, "spec": {"template": template}})
    created = datetime.fromisoformat(made["metadata"]["creationTimestamp"]).astimezone(UTC)
    identity = run_id(cluster="bench", namespace=NAMESPACE, kind="Job", name=job, created=created)
    return identity, made["metadata"]["uid"]


async def _change(cluster: ApiClient, job: str, name: str) -> float:
    """Start a Job; return the seconds until its run is active."""
    begin = time.perf_counter()
    status = {"active": 1, "ready": 1, "startTime": "2036-01-01T00:00:00Z"}
    await cluster.patch(f"{JOB_PATH}/{job}/status", {"status": status})
    await _until_phase(cluster, name, "Active")
    return time.perf_counter() - begin


async def _finish(cluster: ApiClient, job: str) -> None:
    at = "2036-01-01T01:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": at, "reason": "CompletionsReached", "message": "done"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"active": 0, "ready": 0, "succeeded": 1, "completionTime": at, "conditions": conditions}
    await cluster.patch(f"{JOB_PATH}/{job}/status", {"status": status})


async def _old_run(cluster: ApiClient, number: int) -> None:
    """Create a run with the status that a controller before has written; every tenth is active and has its Job."""
    job, at = f"old-{number}", "2026-01-01T00:00:00Z"
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": job}
    phase, identity, uid = "Completed", f"{number:064x}", f"uid-{number}"
    if number % ACTIVE_IN == 0:
        phase, (identity, uid) = "Active", await _new_job(cluster, job)
        status = {"active": 1, "ready": 1, "startTime": at}
        await cluster.patch(f"{JOB_PATH}/{job}/status", {"status": status})
    name = run_name(job, identity)
    await cluster.create(RUN_PATH, run_manifest(name, NAMESPACE, identity, workload=reference | {"uid": uid}))
    attempts: list[Object] = [
        {"attempt": each, "startTime": at, "endTime": at, "cause": "Unknown"} for each in range(2)
    ]
    if phase == "Active":
        del attempts[-1]["endTime"], attempts[-1]["cause"]
    conditions = [
        {"type": kind, "status": "True", "reason": "Started", "message": "", "lastTransitionTime": at}
        for kind in ("Admitted", "Started", "Reporting", "Profilable")
    ]
    status = {
        "phase": phase,
        "startTime": at,
        "attempt": 1,
        "attempts": attempts,
        "conditions": conditions,
        "hosts": {"expected": 16, "reporting": 16, "summary": "16/16"},
    }
    await cluster.patch(f"{RUN_PATH}/{name}/status", {"status": status})


async def _until_phase(cluster: ApiClient, name: str, phase: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await _phase(cluster, name) != phase:  # noqa: ASYNC110 - polls the API server
            await asyncio.sleep(0.02)


async def _phase(cluster: ApiClient, name: str) -> str:
    with suppress(NotFound):
        return str(((await cluster.get(f"{RUN_PATH}/{name}")).get("status") or {}).get("phase", ""))
    return ""
