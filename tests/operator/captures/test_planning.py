from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.captures import planning
from mldiagnostics_operator.captures.lookup import Lookup
from mldiagnostics_operator.captures.queue.pod_waits import PodWaits
from mldiagnostics_operator.fair_slots import FairSlots
from mldiagnostics_operator.run_exchange import RunExchange
from support.cluster.builders import connection, parsed
from support.cluster.operating import ANY_PORT, condition, operating, verdict
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.api_server_faults import FaultyApiServer
    from support.cluster.operating import Namespace

pytestmark = pytest.mark.apiserver

LARGE = {"diagon.gke.io/profiler-ports": "9" * 250_000}


async def test_a_namespace_has_a_bounded_number_of_waiting_captures(ml: Namespace, tmp_path: Path) -> None:
    brief = {"podName": "a", "durationMilliseconds": 10}
    policy = replace(ANY_PORT, waiting_per_namespace=2)
    async with operating(ml.cluster, ml.name, tmp_path, policy=policy), FakeProfiler().serving(ml.ip) as server:
        for name in ("first", "second"):
            await ml.capture(name, waitForPodsSeconds=600, **brief)
            status = await ml.until(lambda status: status.get("message"), name)
            assert status["message"].startswith("waiting for pods until 20")
        await ml.capture("third", waitForPodsSeconds=600, **brief)
        status = await ml.finished("third")
        assert verdict(status) == ("Failed", "TooManyWaiting")
        assert "2 of 2 captures of namespace" in status["message"]
        assert "policy.waitingPerNamespace" in status["message"]
        await ml.pod("a", server.port)
        for name in ("first", "second"):
            assert verdict(await ml.finished(name)) == ("Succeeded", "Succeeded")


async def test_pods_with_large_annotations_are_skipped_by_name(
    ml: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MANY_PODS", 3)  # the plan is made in a thread
    async with operating(ml.cluster, ml.name, tmp_path), FakeProfiler().serving(ml.ip) as server:
        await ml.pod("good", server.port, labels={"app": "x"})
        for number in range(3):
            await ml.pod(f"hostile-{number}", labels={"app": "x"}, annotations=LARGE)
        selector = {"selector": {"matchLabels": {"app": "x"}}}
        await ml.capture(target=selector, durationMilliseconds=10, minimumCaptured=1, startLeadMilliseconds=0)
        status = await ml.finished()
    assert verdict(status) == ("Succeeded", "PartlySucceeded")
    assert {result["pod"]: result["reason"] for result in status["results"] if result["state"] == "Skipped"} == {
        f"hostile-{number}": "PortInvalid" for number in range(3)
    }
    assert len(str(status)) < 5000


async def test_a_rejected_look_up_is_a_refusal_by_name(ml: Namespace, tmp_path: Path) -> None:
    async with operating(ml.cluster, ml.name, tmp_path):
        # Valid by the schema of the resource; the API server rejects it as a selector of pods.
        await ml.capture(target={"selector": {"matchLabels": {"a..b/name": "c"}}})
        status = await ml.finished()
    assert verdict(status) == ("Failed", "LookupRejected")
    assert condition(status, "Complete")["message"].startswith(f"pods with labels a..b/name=c in namespace {ml.name}: ")


def planner_over(cluster: ApiClient) -> planning.Planner:
    waits = PodWaits(cluster, per_namespace=1)
    return planning.Planner(Lookup(cluster), waits, ANY_PORT, "test-cluster", utc_now, exchange=RunExchange())


@pytest.mark.parametrize(
    ("resource", "trigger", "reason"),
    [
        ("pods", {"podName": "absent"}, "PodsNotFound"),
        ("mlruns", {"target": {"runRef": {"name": "absent"}}}, "RunNotFound"),
    ],
)
async def test_a_passing_rejection_of_a_look_up_is_not_a_refusal(
    faulty: FaultyApiServer, faulty_cluster: ApiClient, *, resource: str, trigger: dict[str, Any], reason: str
) -> None:
    """An API server that starts rejects requests until it has read the roles."""
    faulty.faults = {f"GET {resource}": "forbid"}
    planned = asyncio.create_task(planner_over(faulty_cluster).plan(parsed(connection(**trigger)), 1))
    await faulty.clear_after_first()
    decision = await planned
    assert isinstance(decision, CaptureRefusal)
    assert decision.reason == reason


async def test_a_slow_look_up_is_reported(ml: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_SLOW_S", 0.0)
    planner = planner_over(ml.cluster)
    reported: list[str] = []

    async def report(reason: str, message: str) -> None:
        reported.append(f"{reason}: {message}")

    async def on_slot() -> None:
        raise AssertionError

    capture = parsed(connection(namespace=ml.name, podName="absent"))
    async with FairSlots(1, per_namespace=1).slot(ml.name) as slot:
        decision = await planner.plan_when_ready(capture, 1, slot=slot, report=report, on_slot=on_slot)
    assert isinstance(decision, CaptureRefusal)
    (message,) = reported
    assert message.startswith("LookingUp: reading the pods and their owners: ")
