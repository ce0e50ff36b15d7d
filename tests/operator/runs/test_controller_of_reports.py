"""Runs and the reports of their processes: real HTTPS, projected tokens and objects."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from cluster.ports import free_port
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator import supervision
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.control_plane.identity import lookups
from mldiagnostics_operator.control_plane.journal.journal import Journal
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.runs import resync
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.control_planes import CLUSTER, Reporter, Running, make_account
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
unix_s = time.time


async def until(cluster: ApiClient, namespace: str, holds: Callable[[dict[str, Object]], Any]) -> dict[str, Object]:
    """Wait until the statuses of the runs, by name, meet the condition."""
    statuses: dict[str, Object] = {}
    path = path_to(*RUNS.gvr, namespace=namespace)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(statuses):
                await asyncio.sleep(0.1)
                listed = await cluster.items(path, dict)
                statuses = {run["metadata"]["name"]: run.get("status", {}) for run in listed}
    except TimeoutError:
        raise AssertionError(f"the runs stay {statuses}") from None
    return statuses


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    with suppress(aiohttp.ClientError):
        async with session.get(url):
            return True
    return False


async def test_reports_reach_the_object_of_their_run(
    cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resync, "RESYNC_S", 0.2)
    monkeypatch.setattr(lookups, "LOOKUP_S", DEADLINE_S)
    await install(cluster, RUNS)
    await make_account(cluster, namespace)
    port = free_port()
    config = OperatorConfig(
        cluster_name=CLUSTER,
        control_plane=True,
        control_plane_port=port,
        pod_namespace=namespace,
        volume_root=tmp_path,
        policy=Policy(default_storage=Location.parse("volume:///runs")),
        watch_namespaces=(namespace,),
    )
    monkeypatch.setattr(supervision, "RESTART_S", 0.1)
    telemetry = OperatorMetrics()
    controller = RunController(cluster, config, telemetry, holder="operator/uid/1", storage=Storage(tmp_path))
    with socket.socket() as taken:
        taken.bind(("", port))
        taken.listen()
        running = asyncio.create_task(controller.run())
        async with asyncio.timeout(DEADLINE_S):
            while b'work_failures_total{work="control plane"}' not in telemetry.exposition():  # noqa: ASYNC110 - polls
                await asyncio.sleep(0.01)
    try:
        # Certificates have tests of their own; this one is for the name of the Service.
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
            url = f"https://127.0.0.1:{port}"
            plane: Any = None  # the controller has it
            reporting = Running(cluster, namespace, plane, controller.reports, telemetry, session, url)
            async with asyncio.timeout(DEADLINE_S):
                while not await _answers(session, url):  # noqa: ASYNC110 - the certificate is made first
                    await asyncio.sleep(0.1)
            job = await reporting.job()
            label = {"metadata": {"labels": {"managed-mldiagnostics-gke": "true"}}}
            await cluster.patch(path_to("batch", "v1", "jobs", namespace=namespace, name="trainer"), label)
            await cluster.patch(
                path_to("batch", "v1", "jobs", namespace=namespace, name="trainer"), {"spec": {"suspend": False}}
            )
            inside = await reporting.reporter(owner=job)
            await inside.persisted(
                progress={"step": 1200, "stepTimeSeconds": 0.21},
                metrics={"loss": 2.5},
                configs={"user": {"lr": 0.1, "api_key": "hunter2"}},
                profiler={"ports": [9999], "server": "jax"},
            )
            outside = Reporter(session, url, await reporting.token(), "my-experiment")
            await outside.persisted(worldSize=2)
            name = f"trainer-{inside.run[:10]}"
            statuses = await until(
                cluster,
                namespace,
                lambda by_name: (
                    len(by_name) == 2
                    and all(by_name.values())
                    and by_name.get(name, {}).get("phase") == "Active"
                    and "progress" in by_name[name]
                ),
            )
            status = statuses.pop(name)
            assert (status["phase"], status["hosts"]["summary"]) == ("Active", "1/1")
            assert (status["progress"]["step"], status["progress"]["stepTime"]) == (1200, "210 ms")
            assert (status["metrics"], status["configs"]["user"]["lr"]) == ({"loss": 2.5}, "0.1")
            assert "hunter2" not in str(status)
            truths = {condition["type"]: condition["status"] for condition in status["conditions"]}
            assert (truths["Reporting"], truths["Profilable"]) == ("True", "True")
            [(reported, other)] = statuses.items()
            assert reported.startswith("r-")
            assert (other["runId"], other["phase"], other["hosts"]["summary"]) == ("my-experiment", "Active", "1/2")
            with monkeypatch.context() as machine:
                machine.setattr(time, "time", lambda: unix_s() - 3600)  # a step of an hour back refuses nobody
                for _ in range(3):
                    assert (await inside.report()).status == 200
            await outside.report(phase="Completed", worldSize=2)
            await until(
                cluster, namespace, lambda by_name: by_name[reported]["phase"] == "Completed" if by_name else False
            )
            sent = await inside.report(progress={"step": 1300})
            assert sent.body["persistedSequence"] < inside.sequence
            controller.stop_accepting()  # the Lease is released after this, so that no report reaches two leaders
            await controller.drain()
            assert not await _answers(session, url)
            key, storage = RunKey(namespace, inside.run), Storage(tmp_path)
            await Journal(journaled := ReportTable(), storage, config.policy.default_storage).recall(key)
            assert journaled.answer(key, inside.incarnation).persisted_sequence == inside.sequence
            storage.close()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
