"""Causes, signals and sessions in the status of runs, on a real API server whose pods and nodes the tests make."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.reported import RunKey
from mldiagnostics_api.reports import read_report
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.run_names import run_label
from mldiagnostics_api.v1alpha1 import RunSession
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_kube.clock import utc_now
from mldiagnostics_kube.informer import Backoff
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.sender import Sender
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs import controller as controller_module
from mldiagnostics_operator.runs import observer
from mldiagnostics_operator.runs import run as run_module
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.telemetry import OperatorMetrics
from support import builders
from support.definitions import install
from support.operating import DEADLINE_S, Namespace, condition
from support.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mldiagnostics_kube.client import ApiClient

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
HOSTS = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
POD = {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}}
JOBS = {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": {**HOSTS, "template": POD}}}]}


class World:
    """A run of a JobSet with its pods, and the exchange with captures."""

    def __init__(self, ml: Namespace, controller: RunController, exchange: RunExchange) -> None:
        self.ml, self.controller, self.exchange = ml, controller, exchange
        self.jobset: Object = {}
        self.run_id = ""

    async def start(self) -> None:
        labels = {"managed-mldiagnostics-gke": "true"}
        api_version = "jobset.x-k8s.io/v1alpha2"
        self.jobset = await Stage(self.ml, "").make(api_version, "JobSet", "trainer", labels=labels, spec=JOBS)
        run = await self.until(lambda run: run["spec"].get("runId"))
        self.run_id = run["spec"]["runId"]

    async def until(self, holds: Callable[[Object], Any]) -> Object:
        """Wait until the run meets the condition; return it."""
        runs: list[Object] = []
        path = path_to(*RUNS.gvr, namespace=self.ml.name)
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not (runs and holds(runs[0])):
                    await asyncio.sleep(0.1)
                    runs = await self.ml.cluster.items(path, dict)
        except TimeoutError:
            raise AssertionError(f"the run stays {runs}") from None
        return runs[0]

    async def pod(self, name: str, node: str, attempt: int = 0) -> Object:
        labels = {RUN_LABEL: run_label(self.run_id), "jobset.sigs.k8s.io/restart-attempt": str(attempt)}
        body = builders.pod(name, namespace=self.ml.name, labels=labels, node=node)
        now = format_time(utc_now())
        body["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}]
        body["status"]["containerStatuses"] = [self.container({"running": {"startedAt": now}})]
        return await self.ml.put(path_to("", "v1", "pods", namespace=self.ml.name), body)

    async def fail(self, name: str, code: int) -> None:
        now = format_time(utc_now())
        ended = {"exitCode": code, "reason": "Error", "startedAt": now, "finishedAt": now}
        status = {"phase": "Failed", "containerStatuses": [self.container({"terminated": ended})]}
        path = path_to("", "v1", "pods", namespace=self.ml.name, name=name, sub="status")
        await self.ml.cluster.patch(path, {"status": status})

    async def set_jobset(self, *, restarts: int, ready: int) -> None:
        parts = {"name": "workers", "ready": ready, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=self.ml.name, name="trainer", sub="status")
        await self.ml.cluster.patch(path, {"status": {"restarts": restarts, "replicatedJobsStatus": [parts]}})

    @staticmethod
    def container(state: Object) -> Object:
        fields = {"ready": False, "restartCount": 0, "image": "train:1", "imageID": "train:1"}
        return {"name": "train", "state": state, **fields}


@pytest.fixture
async def world(cluster: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(run_module, "UPDATE_INTERVAL_S", 0.1)
    monkeypatch.setattr(controller_module, "RESYNC_S", 0.5)
    monkeypatch.setattr(observer, "NOTIFY_S", 0.1)
    monkeypatch.setattr(observer, "EXAMINED_S", (0.1, 1.0))
    await install(cluster, RUNS)
    async with running(cluster, namespace) as made:
        await made.start()
        yield made


@asynccontextmanager
async def running(cluster: ApiClient, namespace: str) -> AsyncIterator[World]:
    """Run the controller over the namespace."""
    exchange = RunExchange()
    config = OperatorConfig(watch_namespaces=(namespace,), cluster_name="test-cluster")
    soon = Backoff(shortest_s=0.1, longest_s=0.2, absent_s=0.2)
    controller = RunController(
        cluster, config, OperatorMetrics(), holder="operator/uid/1", exchange=exchange, backoff=soon
    )
    task = asyncio.create_task(controller.run())
    try:
        yield World(Namespace(cluster, namespace, "10.0.0.1"), controller, exchange)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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


def attempt(run: Object, number: int) -> Object:
    attempts = run.get("status", {}).get("attempts") or ()
    return next((each for each in attempts if each["attempt"] == number), {})


async def test_a_restart_is_explained_by_the_node_that_was_lost(world: World, cluster: ApiClient) -> None:
    node = f"lost-{world.ml.name}"
    await put_lost_node(cluster, node)
    await world.pod("w-0", "healthy")
    await world.pod("w-1", node)
    await world.set_jobset(restarts=0, ready=1)
    run = await world.until(lambda run: attempt(run, 0).get("startUp", {}).get("startedTime"))
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
    path = path_to("", "v1", "events", namespace=world.ml.name)
    async with asyncio.timeout(DEADLINE_S):
        while "Disrupted" not in await cluster.items(path, lambda event: event["reason"]):  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.1)


async def test_signals_and_sessions_are_in_the_status(world: World) -> None:
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
