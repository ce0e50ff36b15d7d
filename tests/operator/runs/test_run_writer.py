"""The order of the writes of statuses, on a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.v1alpha1 import MLRunStatus
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_kube.clock import utc_now
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.runs.run_writer import RunWriter
from mldiagnostics_operator.runs.write_rate import WriteRate
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.definitions import install
from support.operating import DEADLINE_S

if TYPE_CHECKING:
    from mldiagnostics_kube.client import ApiClient

pytestmark = pytest.mark.apiserver


async def test_a_change_of_phase_overtakes_other_changes_that_wait(cluster: ApiClient, namespace: str) -> None:
    await install(cluster, RUNS)
    path = path_to(*RUNS.gvr, namespace=namespace)
    made = [await cluster.create(path, run_manifest(f"run-{n}", namespace, f"{n:064x}")) for n in range(4)]
    runs = [Run.of(body) for body in made]
    for run in runs[:3]:
        run.status = MLRunStatus(phase=MLRunPhase.ACTIVE)
    written: asyncio.Queue[str] = asyncio.Queue()
    writer = RunWriter(
        cluster,
        OperatorMetrics(),
        WriteRate(),
        next_status=lambda _: MLRunStatus(phase=MLRunPhase.ACTIVE, reason="Running"),
        written=lambda run, _: written.put_nowait(run.meta.name),
        gone=lambda _: None,
        me="operator/uid/1",
        clock=utc_now,
    )
    for run in runs:
        writer.consider(run)
    task = asyncio.create_task(writer.run())
    async with asyncio.timeout(DEADLINE_S):
        order = [await written.get() for _ in runs]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert order == ["run-3", "run-0", "run-1", "run-2"]
