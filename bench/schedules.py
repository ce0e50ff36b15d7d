"""Schedules: memory and processor time of many, and the quality of the trigger for slower steps."""

import asyncio
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from cluster.envtest import apiserver
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES
from mldiagnostics_api.schedules.run_readings import RunReadings
from mldiagnostics_api.schedules.trigger_monitor import TriggerMonitor
from mldiagnostics_api.schedules.trigger_sample import WARM_UP, WINDOW_S, TriggerSample
from mldiagnostics_api.schedules.triggers import Firing, TriggerRule, TriggerType
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.schedules.controller import LOOK_S
from support.cluster.definitions import install

from bench.few_at_once import few_at_once
from bench.process_usage import cpu_seconds, rss_mb
from bench.schedule_looks import FASTER, HOSTS
from bench.table import Section

NAMESPACES: Final = 50
SCHEDULED: Final = int(os.environ.get("SCHEDULES", "1000"))
ACTIVE: Final = int(os.environ.get("RUNS", "10000"))
FULL_S: Final = 200.0
MEASURED_S: Final = 60.0
TRIGGERS: Final = [{"type": str(each)} for each in TriggerType]
DAY: Final = int(86_400 / WINDOW_S)
DAYS, RISES, NOISE = 100, 200, 0.03
Object = dict[str, Any]


def measure() -> Section:
    """Run the benchmark; takes about ten minutes."""
    load = os.getloadavg()[0]
    idle_mb, many_mb, look_s = asyncio.run(_measure())
    print(f"... {DAYS} healthy days and {RISES} rises", flush=True)
    delays_s = [_delay_s(seed) for seed in range(RISES)]
    late = statistics.quantiles(delays_s, n=20)[18]
    return Section(
        "schedules",
        f"Schedules: {SCHEDULED} of them, and {ACTIVE} active runs",
        ("figure", "measured", "goal"),
        (
            ("memory of the controller without runs", f"{idle_mb:.0f} MB", ""),
            (f"… with {ACTIVE} runs, {SCHEDULED} schedules and full baselines", f"{many_mb:.0f} MB", "≤ 200 MB"),
            ("processor time of a look at all of them", f"{look_s:.2f} s", ""),
            (f"… of one core, at a look each {LOOK_S:g} s", f"{look_s / LOOK_S:.0%}", "≤ 20 %"),
            ("false StepTimeRise in a healthy day", f"{_false_triggers() / DAYS:.2f}", "≤ 0.01"),
            (
                "a rise of 15 % → StepTimeRise, p50 / p95",
                f"{statistics.median(delays_s):.0f} / {late:.0f} s",
                "≤ 100 s",
            ),
        ),
        f"A real kube-apiserver and etcd, the controller in a process of its own, and this benchmark share "
        f"{os.cpu_count()} cores (load average {load:.1f} at the start). {NAMESPACES} namespaces; each schedule has "
        f"all triggers and {ACTIVE // SCHEDULED} runs, whose reports of {HOSTS} hosts are made up. The clock is "
        f"{FASTER} times faster, so that each look closes a window. Days and rises are simulated with a noise of "
        f"{NOISE:.0%} and single slow windows.",
    )


async def _measure() -> tuple[float, float, float]:
    with apiserver() as server, tempfile.TemporaryDirectory() as folder:
        cluster = await ApiClient.connect({"KUBECONFIG": str(server.kubeconfig)})
        try:
            for resource in (CONNECTIONS, RUNS, SCHEDULES):
                await install(cluster, resource)
            names = [f"team-{number}" for number in range(NAMESPACES)]
            await few_at_once(cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": n}}) for n in names)
            counts = Path(folder) / "counts"
            command = [sys.executable, "-m", "bench.schedule_looks", str(server.kubeconfig), str(counts)]
            idle = await asyncio.create_subprocess_exec(*command)
            await asyncio.sleep(15)
            idle_mb = rss_mb(idle.pid)
            idle.kill()
            print(f"... {ACTIVE} runs and {SCHEDULED} schedules (about 2 min)", flush=True)
            await few_at_once(_run(cluster, number) for number in range(ACTIVE))
            await few_at_once(_schedule(cluster, number) for number in range(SCHEDULED))
            print(f"... their looks (about {(FULL_S + MEASURED_S) / 60:.0f} min)", flush=True)
            process = await asyncio.create_subprocess_exec(*command)
            await asyncio.sleep(FULL_S)
            cpu_s, readings = cpu_seconds(process.pid), int(counts.read_text())
            await asyncio.sleep(MEASURED_S)
            looks = (int(counts.read_text()) - readings) / ACTIVE
            look_s = (cpu_seconds(process.pid) - cpu_s) / looks
            many_mb = rss_mb(process.pid)
            process.kill()
        finally:
            await cluster.aclose()
    return idle_mb, many_mb, look_s


async def _run(cluster: ApiClient, number: int) -> None:
    namespace, group = f"team-{number % NAMESPACES}", f"g{number % SCHEDULED}"
    path = path_to(*RUNS.gvr, namespace=namespace)
    metadata = {"name": f"run-{number}", "labels": {"group": group}}
    body = {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": metadata,
        "spec": {"runId": f"{number:064x}"},
    }
    await cluster.create(path, body)
    status = {"phase": "Active", "runId": f"{number:064x}", "startTime": "2026-01-01T00:00:00Z"}
    await cluster.patch(f"{path}/run-{number}/status", {"status": status})


async def _schedule(cluster: ApiClient, number: int) -> None:
    path = path_to(*SCHEDULES.gvr, namespace=f"team-{number % NAMESPACES}")
    spec: Object = {
        "target": {"matchLabels": {"group": f"g{number}"}},
        "schedule": {"every": "7d"},
        "triggers": TRIGGERS,
    }
    metadata = {"name": f"schedule-{number}"}
    await cluster.create(
        path, {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": metadata, "spec": spec}
    )


class _Job:
    """A run that is observed each window."""

    def __init__(self, seed: int) -> None:
        self._random, self._windows = random.Random(seed), 0
        self._readings, self._monitor = RunReadings(), TriggerMonitor()
        self.fired: list[Firing] = []

    def window(self, slower: float = 1.0) -> None:
        """Observe a window, at times a single slow one."""
        self._windows += 1
        step_s = 0.2 * max(0.1, self._random.gauss(1, NOISE)) * (1.5 if self._random.random() < 0.02 else 1)
        now = self._windows * WINDOW_S
        self._readings.observe(TriggerSample(step=self._windows, step_time_s=slower * step_s), now)
        rule = TriggerRule(type=TriggerType.STEP_TIME_RISE)
        self.fired += [each for each, _ in self._monitor.firing("run", self._readings, [rule], self.fired, now)]


def _false_triggers() -> int:
    total = 0
    for seed in range(DAYS):
        job = _Job(seed)
        for _ in range(DAY):
            job.window()
        total += len(job.fired)
    return total


def _delay_s(seed: int) -> float:
    """Return how long a rise of 15 % lasts until the trigger fires."""
    job = _Job(seed)
    for _ in range(WARM_UP + 100):
        job.window()
    windows = 0
    while not job.fired and windows < 100:
        windows += 1
        job.window(1.15)
    return windows * WINDOW_S
