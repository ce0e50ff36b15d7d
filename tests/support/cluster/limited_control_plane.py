"""The control plane in a process with the chart's memory limit.

Usage: `python -m support.cluster.limited_control_plane FOLDER`.
It prints its port, and after the end of its input the figures of its run as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import sys
import threading
import time
from asyncio.events import Handle
from pathlib import Path
from typing import Any, Final

from mldiagnostics.capture.budget import memory_limit
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.models import MAX_BODY_BYTES
from mldiagnostics_kube.certificates import ServingCertificate
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_kube.process.garbage import exempt_loaded
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.http import reports_endpoint
from mldiagnostics_operator.control_plane.http.server import ControlPlane
from mldiagnostics_operator.control_plane.memory.budget import ReportBudget
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.programs.peak_memory import peak_bytes

SMALLEST_TRACES: Final = 16 * 2**20
"""`policy.maxTraceBytes` of the smallest installation: 480 MiB."""
STACK_BYTES: Final = 512 * 1024


KEPT: Final = 5
"""Longest callbacks whose times are kept."""
REFERENCE: Final = json.dumps([[1_790_000_000_000_000, 2, 0, 0, "a text"]] * (MAX_BODY_BYTES // 36))
"""Events in the largest body, parsed at once."""
REFERENCE_INTERVAL_S: Final = 0.5


class LoopTimes:
    """The longest times that single callbacks have computed; waiting for a processor does not count.

    They are compared with the time that the same process needs to parse a body of the largest size, measured in
    between, as machines differ and are loaded.
    """

    def __init__(self) -> None:
        self._longest: list[tuple[float, str]] = []
        self._references: list[float] = []

    def measure(self) -> None:
        """Measure all callbacks of this process from now on."""
        run = Handle._run

        def measured(handle: Handle) -> None:
            callback = handle._callback  # type: ignore[attr-defined]
            start = time.thread_time()
            run(handle)
            spent_s = time.thread_time() - start
            if len(self._longest) < KEPT or spent_s > self._longest[-1][0]:
                longest = [*self._longest, (spent_s, _name_of(callback))]
                self._longest = sorted(longest, reverse=True)[:KEPT]

        setattr(Handle, "_run", measured)  # noqa: B010 - it is private

    async def measure_reference(self) -> None:
        """Parse a body of the largest size now and then, in another thread, until cancelled."""
        while True:
            self._references.append(await asyncio.to_thread(_reference_s))
            await asyncio.sleep(REFERENCE_INTERVAL_S)

    def figures(self) -> dict[str, Any]:
        """Return the longest callbacks, and how often the reference fits into each."""
        reference_s = statistics.median(self._references)
        return {
            "longest_callback_ms": round(self._longest[0][0] * 1000, 1),
            "reference_ms": round(reference_s * 1000, 1),
            "longest_callbacks": [(round(spent_s / reference_s, 2), name) for spent_s, name in self._longest],
        }


def _reference_s() -> float:
    start = time.thread_time()
    json.loads(REFERENCE)
    return time.thread_time() - start


def _name_of(callback: Any) -> str:
    """Return the function of a callback, or the coroutine whose task it steps."""
    task = getattr(callback, "__self__", None)
    work = task.get_coro() if isinstance(task, asyncio.Task) else callback
    return str(getattr(work, "__qualname__", type(work).__name__))


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
    reference = asyncio.create_task(times.measure_reference())
    times.measure()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    figures = times.figures() | {
        "peak_mib": peak_bytes() // 2**20,
        "limit_mib": limit // 2**20,
        "charged_mib": (table.budget.state.used + table.budget.events.used) // 2**20,
        "runs": table.run_count,
    }
    print(json.dumps(figures), flush=True)
    for task in (work, reference):
        task.cancel()
    await asyncio.gather(work, reference, return_exceptions=True)
    await cluster.aclose()


def main() -> None:
    """Serve with the limit; a process beyond it gets no more memory and fails."""
    limit = memory_limit(SMALLEST_TRACES)
    threading.stack_size(STACK_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    for name in ("REPORTS_PER_SECOND", "REPORTS_BURST"):  # one client has the rate of many
        setattr(reports_endpoint, name, 1e6)
    exempt_loaded()
    asyncio.run(serve(Path(sys.argv[1]), limit, LoopTimes()))


if __name__ == "__main__":
    main()
