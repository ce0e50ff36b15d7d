"""The control plane of a new leader over the volume of a former one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.identity.deleted_pods import DeletedPods
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.control_plane.service import FORGET_S, serve
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.control_planes import CLUSTER, make_account, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

DEADLINE_S = 60


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 - polls the table
            await asyncio.sleep(0.01)


async def test_a_new_leader_knows_what_was_reported_and_forgets_it_after_the_end(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path) as former:
        client = await former.reporter()
        await client.persisted(progress={"step": 7})
        reported = former.view(client.run)
        assert reported
    key = RunKey(namespace, client.run)
    config = OperatorConfig(
        cluster_name=CLUSTER,
        pod_namespace=namespace,
        control_plane_port=0,
        volume_root=tmp_path / "volume",
        policy=Policy(default_storage=Location.parse("volume:///runs")),
    )
    table, now, unfinished = ReportTable(), [reported.last_received + FORGET_S + 1], [key]
    work = asyncio.create_task(
        serve(
            cluster,
            config,
            OperatorMetrics(),
            table,
            lambda: unfinished,
            storage=Storage(config.volume_root),
            deleted_pods=DeletedPods(),
            clock=lambda: now[0],
            upkeep_s=0.01,
        )
    )
    try:
        await until(lambda: table.view(key))
        recalled = table.view(key)
        assert recalled
        assert [host.step for host in recalled.hosts] == [7]
        unfinished.clear()
        await until(lambda: table.view(key) is None)
    finally:
        work.cancel()
        await asyncio.wait({work})
    assert work.cancelled()
