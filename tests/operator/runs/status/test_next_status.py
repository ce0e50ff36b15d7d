"""Causes, signals and sessions in the status of runs, on a real API server whose pods and nodes the tests make."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.report.cluster_record import ClusterRecord
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.reports.models import read_report
from mldiagnostics_api.reports.reported_run import RunKey
from mldiagnostics_api.v1alpha1 import RunSession
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.control_plane.identity.sender import Sender
from support.cluster.operating import DEADLINE_S, condition
from support.cluster.run_world import attempt, running

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.run_world import World

pytestmark = pytest.mark.apiserver


async def put_lost_node(cluster: ApiClient, name: str) -> None:
    """Make a node whose kubelet has just stopped reporting."""
    await cluster.create(path_to("", "v1", "nodes"), {"metadata": {"name": name}})
    ready = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": format_time(utc_now()),
    }
    await cluster.patch(path_to("", "v1", "nodes", name=name, sub="status"), {"status": {"conditions": [ready]}})


async def test_a_restart_is_explained_by_the_node_that_was_lost(
    world: World, cluster: ApiClient, tmp_path: Path
) -> None:
    await world.start()
    node = f"lost-{world.ml.name}"
    await put_lost_node(cluster, node)
    await world.pod("w-0", "healthy")
    await world.pod("w-1", node)
    await world.set_jobset(restarts=0, ready=1)
    run = await world.until(lambda run: attempt(run, 0).get("startUp", {}).get("pulledTime"))
    assert attempt(run, 0)["startUp"]["pulledTime"] == "2026-04-24T03:04:05Z"
    assert set(attempt(run, 0)["startUp"]) == {
        "createdTime",
        "admittedTime",
        "scheduledTime",
        "pulledTime",
        "startedTime",
    }
    await world.fail("w-0", 1)
    await world.set_jobset(restarts=1, ready=0)
    await world.until(lambda run: attempt(run, 0).get("cause") == "ExitCode")
    await world.ml.remove_pod("w-1")
    run = await world.until(lambda run: attempt(run, 0).get("cause") == "NodeLost")
    assert attempt(run, 0)["causeMessage"] == (
        f"node '{node}': NodeStatusUnknown: Kubelet stopped posting node status."
    )
    record = tmp_path / "runs" / world.run_id / "reported/cluster.json"
    async with asyncio.timeout(DEADLINE_S):
        while not (record.exists() and b"node lost" in record.read_bytes()):  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.1)
    assert ClusterRecord.parse(record.read_bytes()).attempts[0].cause == "node lost"
    path = path_to("", "v1", "events", namespace=world.ml.name)
    async with asyncio.timeout(DEADLINE_S):
        while "Disrupted" not in await cluster.items(path, lambda event: event["reason"]):  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.1)


async def test_signals_and_sessions_are_in_the_status(world: World) -> None:
    await world.start()
    await world.set_jobset(restarts=0, ready=1)
    await world.until(lambda run: attempt(run, 0))
    sender = Sender(world.ml.name, "default", "w-0", "uid-0")
    report = read_report({"v": 1, "incarnation": "00000001", "sequence": 1, "sent": 1.0, "rank": 0})
    key = RunKey(world.ml.name, world.run_id)
    world.controller.reports.apply(key, report, sender, utc_now().timestamp() - 500)
    world.exchange.note_sessions(world.ml.name, {world.run_id: RunSession(id="s-1", source="Capture", state="Running")})
    run = await world.until(lambda run: condition(run["status"], "HostsSilent").get("status") == "True")
    assert condition(run["status"], "HostsSilent")["message"] == "1 of 1 hosts have not reported for 120 s: w-0"
    assert [(each["id"], each["source"]) for each in run["status"]["profileSessions"]] == [("s-1", "Capture")]


async def test_a_capture_that_ends_after_its_run_is_in_the_status(
    world: World, cluster: ApiClient, tmp_path: Path
) -> None:
    await world.start()
    await world.set_jobset(restarts=0, ready=1)
    await world.until(lambda run: attempt(run, 0))
    await world.complete_jobset()
    await world.until(lambda run: run["status"]["phase"] == "Completed")
    session = RunSession(id="s-2", source="Capture", state="Stored")
    async with running(cluster, world.ml.name, tmp_path) as later:  # a leader that has not seen the run
        later.exchange.note_sessions(world.ml.name, {world.run_id: session})
        run = await world.until(lambda run: run["status"].get("profileSessions"))
    assert [each["id"] for each in run["status"]["profileSessions"]] == ["s-2"]
    assert run["status"]["phase"] == "Completed"
