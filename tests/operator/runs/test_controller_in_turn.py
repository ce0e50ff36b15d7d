"""Runs that reports create, in the turns of their namespaces: real objects and their statuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.models import read_report
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

MANY = 983
"""New runs of one namespace, which once froze the statuses of all others for 38 s."""


def report(controller: RunController, namespace: str, run_id: str) -> None:
    now_s = utc_now().timestamp()
    document = {"v": 1, "incarnation": "00000001", "sequence": 1, "sent": now_s, "rank": 0, "run": {"name": "r"}}
    controller.reports.apply(RunKey(namespace, run_id), read_report(document), Sender(namespace, "someone"), now_s)


async def phases(cluster: ApiClient, namespace: str) -> list[str | None]:
    listed: list[dict[str, Any]] = await cluster.items(path_to(*RUNS.gvr, namespace=namespace), dict)
    return [(run.get("status") or {}).get("phase") for run in listed]


async def test_many_new_runs_of_one_namespace_leave_writes_for_another(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    other = f"{namespace}-other"
    await install(cluster, RUNS)
    await cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": other}})
    config = OperatorConfig(
        volume_root=tmp_path,
        policy=Policy(default_storage=Location.parse("volume:///runs")),
        watch_namespaces=(namespace, other),
    )
    controller = RunController(cluster, config, OperatorMetrics(), holder="operator/uid/1", storage=Storage(tmp_path))
    for number in range(MANY):
        report(controller, namespace, f"greedy-{number}")
    report(controller, other, "honest")
    running = asyncio.create_task(controller.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while await phases(cluster, other) != ["Active"]:  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.1)
        assert len(await phases(cluster, namespace)) < MANY  # at 10 writes a second, they take minutes
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
