"""The controller of schedules in a process of its own, with runs that train steadily.

usage: python -m bench.schedule_looks KUBECONFIG COUNTS

It writes the number of readings to the file COUNTS, once a second.
"""

import asyncio
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedRun
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.schedules.controller import LOOK_S, ScheduleController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics

HOSTS = 4
STEP_S, NOISE = 0.5, 0.03
FASTER = 10
"""The clock of the controller, so that its baselines are full in three minutes."""


class SteadyReports:
    """Reports of runs, as the control plane would have them."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self.readings = 0

    def runs(self) -> list[RunKey]:
        """Return no run: captures are not made here."""
        return []

    def view(self, key: RunKey) -> ReportedRun:
        """Return a run with a new step."""
        self.readings += 1
        now = time.time()
        step_s = STEP_S * self._random.gauss(1, NOISE)
        hosts = [_host(rank, self.readings, step_s, now) for rank in range(HOSTS)]
        return ReportedRun(
            key=key,
            revision=0,
            step=self.readings,
            step_time_seconds=step_s,
            hosts=hosts,
            first_received=now,
            last_received=now,
        )


def _host(rank: int, step: int, step_s: float, now: float) -> ReportedHost:
    return ReportedHost(
        rank=rank,
        slice=None,
        name=f"host-{rank}",
        pod=f"trainer-{rank}",
        pod_uid="",
        node="",
        attempt=0,
        incarnation="a",
        step=step,
        step_time_seconds=step_s,
        received=now,
    )


async def main(kubeconfig: str, counts: Path) -> None:
    began = datetime.now(UTC)
    reports = SteadyReports()
    cluster = await ApiClient.connect({"KUBECONFIG": kubeconfig})
    with tempfile.TemporaryDirectory() as folder:
        controller = ScheduleController(
            cluster,
            OperatorConfig(policy=Policy()),
            OperatorMetrics(),
            holder="bench",
            storage=Storage(Path(folder)),
            exchange=RunExchange(reports),
            clock=lambda: began + FASTER * (datetime.now(UTC) - began),
            look_s=LOOK_S / FASTER,
        )
        running = asyncio.create_task(controller.run())
        while not running.done():
            await asyncio.to_thread(counts.write_text, str(reports.readings))
            await asyncio.sleep(1)
        await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
