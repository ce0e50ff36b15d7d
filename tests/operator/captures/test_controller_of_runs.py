from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.reports.models import read_report
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.run_exchange import RunExchange
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S, Namespace, operating, verdict
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.apiserver

RUN_ID = "a" * 64


@pytest.fixture
def table() -> ReportTable:
    return ReportTable()


@pytest.fixture
def exchange(table: ReportTable) -> RunExchange:
    return RunExchange(table)


@pytest.fixture
async def volume(ml: Namespace, exchange: RunExchange, tmp_path: Path) -> AsyncIterator[Path]:
    """The volume of an operator that knows the reports of the table."""
    await install(ml.cluster, RUNS)
    async with operating(ml.cluster, ml.name, tmp_path, exchange=exchange):
        yield tmp_path


async def make_run(ml: Namespace, phase: str = "Active", **spec: Any) -> None:
    body = {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": {"name": "trainer-1"},
        "spec": {"runId": RUN_ID, **spec},
        "status": {"phase": phase, "runId": RUN_ID},
    }
    await ml.put(path_to(*RUNS.gvr, namespace=ml.name), body)


async def captured(ml: Namespace) -> dict[str, Any]:
    target = {"runRef": {"name": "trainer-1"}}
    await ml.capture(target=target, durationMilliseconds=10, startLeadMilliseconds=0)
    return await ml.finished()


def report(table: ReportTable, ml: Namespace, pod: dict[str, Any], port: int) -> None:
    sender = Sender(ml.name, "default", pod["metadata"]["name"], pod["metadata"]["uid"])
    document = {"v": 1, "incarnation": "00000001", "sequence": 1, "sent": 1.0, "rank": 0, "run": {"name": "by hand"}}
    report = read_report(document | {"profiler": {"ports": [port], "server": "jax"}})
    table.apply(RunKey(ml.name, RUN_ID), report, sender, 1.0)


async def test_a_run_is_captured_through_its_workload_at_the_reported_port_into_its_storage(
    ml: Namespace, table: ReportTable, exchange: RunExchange, volume: Path
) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        pod = await ml.pod("trainer-0", labels={OPT_IN_LABEL: "true"})
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "trainer-0", "uid": pod["metadata"]["uid"]}
        await make_run(ml, workloadRef=reference, storageLocation=f"volume:///{ml.name}/of-runs")
        report(table, ml, pod, server.port)
        status = await captured(ml)
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert status["results"][0]["pod"] == "trainer-0"
    assert status["captureResult"]["outputLocation"].startswith(f"volume:///{ml.name}/of-runs/")
    (trace,) = (volume / ml.name / "of-runs").rglob("*.xplane.pb")
    run_id = trace.relative_to(volume / ml.name / "of-runs").parts[0]
    async with asyncio.timeout(DEADLINE_S):
        while (session := exchange.sessions(RunKey(ml.name, run_id))[0]).state == "Running":  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.01)
    assert (session.id, session.state, session.capture) == (trace.parent.name, "Succeeded", "capture")
    assert session.directory == status["captureResult"]["outputLocation"]


@pytest.mark.usefixtures("volume")
async def test_a_run_without_a_workload_is_captured_through_the_pods_that_report_it(
    ml: Namespace, table: ReportTable
) -> None:
    async with FakeProfiler().serving(ml.ip) as server:
        report(table, ml, await ml.pod("by-hand-0"), server.port)
        await make_run(ml)
        assert verdict(await captured(ml)) == ("Succeeded", "Succeeded")


@pytest.mark.usefixtures("volume")
async def test_a_run_that_ended_is_refused(ml: Namespace) -> None:
    await ml.pod("trainer-0", 9999)
    await make_run(ml, phase="Completed", workloadRef={"apiVersion": "v1", "kind": "Pod", "name": "trainer-0"})
    status = await captured(ml)
    assert verdict(status) == ("Failed", "RunEnded")
    assert "capture one that is Active" in status["message"]
