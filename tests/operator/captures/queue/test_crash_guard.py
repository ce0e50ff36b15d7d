from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.v1alpha1 import ObjectMeta
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.captures.queue.crash_guard import MAX_CRASHES, CrashGuard
from support.cluster.definitions import connections
from support.cluster.operating import operating, verdict

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.api_server_faults import FaultyApiServer
    from support.cluster.operating import Namespace

pytestmark = pytest.mark.apiserver

LATER = datetime.now(UTC) + timedelta(days=1)


async def kill() -> None:
    raise SystemExit


async def succeed() -> None:
    pass


async def test_a_capture_whose_planning_ends_processes_is_refused_and_the_others_are_not(ml: Namespace) -> None:
    killer = ObjectMeta.model_validate((await ml.capture("killer", podName="a"))["metadata"])
    other = ObjectMeta.model_validate((await ml.capture("other", podName="a"))["metadata"])
    for _ in range(MAX_CRASHES):
        process = CrashGuard(ml.cluster, LATER)
        assert await process.refuse(other, succeed) is None
        with pytest.raises(SystemExit):
            await process.refuse(killer, kill)
    refusal = await CrashGuard(ml.cluster, LATER).refuse(killer, succeed)
    assert isinstance(refusal, CaptureRefusal)
    assert refusal.reason == "PlanningFailed"
    assert await CrashGuard(ml.cluster, LATER).refuse(other, succeed) is None
    assert "planningTrials" not in await ml.status("other")
    young = CrashGuard(ml.cluster, datetime(2020, 1, 1, tzinfo=UTC))
    assert await young.refuse(killer, kill) is None  # younger than the process


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_a_plan_is_counted_after_a_passing_rejection(
    ml: Namespace, faulty: FaultyApiServer, faulty_cluster: ApiClient, method: str
) -> None:
    meta = ObjectMeta.model_validate((await ml.capture(podName="a"))["metadata"])
    counted: list[int] = []

    async def plan() -> None:
        counted.append((await ml.status())["planningTrials"])

    faulty.faults = {f"{method} mldiagnosticsconnections": "forbid"}
    guarding = asyncio.create_task(CrashGuard(faulty_cluster, LATER).refuse(meta, plan))
    await faulty.clear_after_first()
    assert await guarding is None
    assert counted == [1]


async def test_the_operator_refuses_it_by_name(ml: Namespace, tmp_path: Path) -> None:
    made = await ml.capture("killer", podName="a", waitForPodsSeconds=600)
    status = {"phase": "Pending", "planningTrials": MAX_CRASHES}
    await ml.cluster.patch(f"{connections(ml.name)}/{made['metadata']['name']}/status", {"status": status})
    async with operating(ml.cluster, ml.name, tmp_path, clock=lambda: utc_now() + timedelta(seconds=10)):
        status = await ml.finished("killer")
    assert verdict(status) == ("Failed", "PlanningFailed")
    assert "planningTrials" not in status
