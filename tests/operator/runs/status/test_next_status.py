"""Causes, signals and sessions in the status of runs, on a real API server whose pods and nodes the tests make."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.goodput.report.cluster_record import ClusterRecord
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.reports.models import read_report
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.v1alpha1 import RunSession
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.control_plane.identity.sender import Sender
from support.cluster.namespaces import Stage
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


FIRST = {"jobset.sigs.k8s.io/job-index": "0"}
SECOND = {"jobset.sigs.k8s.io/job-index": "1"}


async def test_restarts_in_place_are_attempts_with_their_causes(world: World) -> None:
    await world.start()
    await world.pod("w-0", "healthy", place=FIRST)
    await world.pod("w-1", "healthy", place=SECOND)
    await world.set_jobset(restarts=0, ready=1)
    await world.until(lambda run: attempt(run, 0).get("podUid"))
    await world.restart("w-0", 1, 137, "OOMKilled")
    await world.until(lambda run: attempt(run, 1).get("podUid"))
    await world.restart("w-0", 1, 3, "Error", after_s=5, delayed=True)
    run = await world.until(lambda run: run["status"]["reason"] == "CrashLoopBackOff")
    assert run["status"]["phase"] == "Active"
    assert "container 'train' of pod 'w-0' ended with exit code 3" in run["status"]["message"]
    await world.restart("w-0", 2, 3, "Error", after_s=5)
    run = await world.until(lambda run: attempt(run, 2))
    await world.restart("w-1", 4, 1, "Error", delayed=True)  # it does not lead
    run = await world.until(lambda run: "'w-1'" in run["status"]["message"])
    assert (run["status"]["attempt"], run["status"]["hosts"]["restarts"]) == (2, 6)
    shown = [(each["attempt"], each.get("reason"), each.get("cause")) for each in run["status"]["attempts"]]
    assert shown == [(0, "OOMKilled", "OutOfMemory"), (1, "Error", "ExitCode"), (2, None, None)]
    await world.events("CrashLoopBackOff", "Disrupted", "Restarted")


async def test_pods_of_a_deployment_are_hosts_without_steps_and_a_replaced_one_does_not_count(world: World) -> None:
    pod = {"metadata": {"labels": {"app": "server"}}, "spec": {"containers": [{"name": "serve", "image": "serve:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "server"}}, "template": pod}
    opted_in = {"managed-mldiagnostics-gke": "true"}
    world.jobset = await Stage(world.ml, "").make("apps/v1", "Deployment", "server", labels=opted_in, spec=spec)
    run = await world.until(lambda run: run["spec"].get("runId"))
    world.run_id = run["spec"]["runId"]
    pods = [await world.pod(name, "healthy") for name in ("server-a", "server-b")]
    key = RunKey(world.ml.name, world.run_id)

    def report(pod: dict[str, Any], incarnation: str) -> None:
        metadata, now = pod["metadata"], utc_now().timestamp()
        fields = {"v": 1, "incarnation": incarnation, "sequence": 1, "sent": now, "rank": 0, "worldSize": 1}
        body = fields | {"run": {"name": "server"}, "progress": {"step": 7, "changed": now}}
        sender = Sender(world.ml.name, "default", metadata["name"], metadata["uid"])
        world.controller.reports.apply(key, read_report(body), sender, now)

    for number, each in enumerate(pods):
        report(each, f"{number:08x}")
    await world.until(lambda run: run.get("status", {}).get("hosts", {}).get("summary") == "2/2")
    await world.ml.remove_pod("server-a")
    report(await world.pod("server-c", "healthy"), "0000000c")
    await world.restart("server-c", 3, 1, "Error")
    run = await world.until(lambda run: run["status"]["hosts"].get("restarts") == 3)
    status = run["status"]
    assert (status["hosts"]["summary"], status["independent"]) == ("2/2", True)
    assert "exceptions" not in status["hosts"]
    assert [(each["attempt"], each.get("cause")) for each in status["attempts"]] == [(0, None)]
    assert not {"progress", "goodput"} & status.keys()


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
    assert condition(run["status"], "HostsSilent")["message"] == "1 of 1 host has not reported for 120 s: w-0"
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
