"""The control plane in a process with the chart's memory limit.

Usage: `python -m support.cluster.limited_control_plane FOLDER`.
It prints its port, and after the end of its input the figures of its run as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import time
from asyncio.events import Handle
from pathlib import Path
from typing import Final

from mldiagnostics.capture.budget import memory_limit
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_kube.certificates import ServingCertificate
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.http import reports_endpoint
from mldiagnostics_operator.control_plane.http.server import ControlPlane
from mldiagnostics_operator.control_plane.memory.budget import ReportBudget
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics

SMALLEST_TRACES: Final = 16 * 2**20
"""`policy.maxTraceBytes` of the smallest installation: 480 MiB."""
STACK_BYTES: Final = 512 * 1024


class LoopTimes:
    """The longest time that one callback has computed; waiting for a processor does not count."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    def measure(self) -> None:
        """Measure all callbacks of this process from now on."""
        run = Handle._run

        def measured(handle: Handle) -> None:
            start = time.thread_time()
            run(handle)
            self.longest_s = max(self.longest_s, time.thread_time() - start)

        setattr(Handle, "_run", measured)  # noqa: B010 - it is private


async def serve(folder: Path, limit: int, times: LoopTimes) -> None:
    """Serve until the input ends."""
    certificate = ServingCertificate(utc_now)
    names = ("pki/apiserver.crt", "pki/apiserver.key")
    certificate.load(*[await asyncio.to_thread((folder / name).read_bytes) for name in names])
    config = OperatorConfig(
        cluster_name="test-cluster",
        control_plane_port=0,
        volume_root=folder / "volume",
        policy=Policy(default_storage=Location.parse("volume:///runs")),
    )
    cluster, telemetry = await ApiClient.connect(os.environ), OperatorMetrics()
    table, storage = ReportTable(ReportBudget(limit)), Storage(config.volume_root)
    plane = ControlPlane(cluster, config, telemetry, table, certificate, storage=storage, journal_interval_s=0.5)
    work = asyncio.create_task(plane.run())
    port = await plane.port
    times.measure()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    figures = {
        "longest_callback_ms": round(times.longest_s * 1000, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "limit_mib": limit // 2**20,
        "charged_mib": (table.budget.state.used + table.budget.events.used) // 2**20,
        "runs": table.run_count,
    }
    print(json.dumps(figures), flush=True)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await cluster.aclose()


def main() -> None:
    """Serve with the limit; a process beyond it gets no more memory and fails."""
    limit = memory_limit(SMALLEST_TRACES)
    threading.stack_size(STACK_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    for name in ("REPORTS_PER_SECOND", "REPORTS_BURST"):  # one client has the rate of many
        setattr(reports_endpoint, name, 1e6)
    asyncio.run(serve(Path(sys.argv[1]), limit, LoopTimes()))


if __name__ == "__main__":
    main()
