"""`mldiag capture` against a real API server, an operator and profiler servers."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_cli.captures.capture_object import create_or_withdraw
from mldiagnostics_cli.exit_codes import INTERRUPTED, PARTIAL
from mldiagnostics_cli.interruption import Interruption
from mldiagnostics_kube.client.apiserver import Conflict, path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_operator.diagnoses.job import JobTemplate
from support.cluster.definitions import connection, connections, install
from support.cluster.operating import DEADLINE_S, Namespace, address, operating
from support.programs.command_line import CommandLine
from support.programs.terminals import in_terminal
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.programs.processes import Ended

OPERATORS = "gke-mldiagnostics"
DIAGNOSES = JobTemplate({}, {}, reads_buckets=False)

pytestmark = pytest.mark.apiserver


@pytest.fixture
async def ml(admin: ApiClient, namespace: str) -> AsyncIterator[Namespace]:
    """A namespace for pods and captures; its pods have an address of this machine."""
    await install(admin)
    with address() as ip:
        yield Namespace(admin, namespace, ip)


@pytest.fixture
def mldiag(api_server: ApiServer, tmp_path: Path, namespace: str) -> CommandLine:
    """The command line with the administrator's kubeconfig."""
    (tmp_path / "cli").mkdir()
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (tmp_path / "cli/kubeconfig").write_text(config)
    return CommandLine(tmp_path / "cli", env={"KUBECONFIG": str(tmp_path / "cli/kubeconfig")})


async def run(mldiag: CommandLine, *arguments: str) -> Ended:
    """Run a command while the operator and the servers work in this process."""
    return await asyncio.to_thread(mldiag.run, "capture", *arguments)


async def test_a_capture_is_followed_to_its_table_and_exit_code(
    ml: Namespace, mldiag: CommandLine, tmp_path: Path
) -> None:
    async with operating(ml.cluster, ml.name, tmp_path / "volume"), FakeProfiler().serving(ml.ip) as server:
        await ml.pod("trainer-0", server.port)
        whole = await run(mldiag, "pod/trainer-0", "--wait", "-d", "10ms")
        assert whole.code == 0, whole.err
        assert whole.out.splitlines()[1].split()[:4] == ["trainer-0", "0", "Captured", "Captured"]
        assert "Succeeded: " in whole.err
        assert "in volume:///" in whole.err

        part = await run(mldiag, "pod/trainer-0", "pod/none", "--wait", "-d", "10ms", "-o", "json")
        assert part.code == PARTIAL, part.err
        document = json.loads(part.out)
        assert {each["pod"]: each["state"] for each in document["targets"]} == {
            "trainer-0": "Captured",
            "none": "Skipped",
        }
        assert document["object"].startswith(f"{ml.name}/trainer-0-")

        captures = len(await captures_of(ml))
        dry = await run(mldiag, "pod/trainer-0", "--dry-run", "--every", "1m", "-o", "json")
        assert json.loads(dry.out)["reason"] == "DryRun", dry.err
        assert len(await captures_of(ml)) == captures

        none = await run(mldiag, "jobset/none", "--wait", "-o", "name")
        assert none.code == 1, none
        assert "none" in none.err


async def test_the_verdict_of_the_operator_follows_the_table(
    ml: Namespace, mldiag: CommandLine, tmp_path: Path
) -> None:
    async with (
        operating(ml.cluster, ml.name, tmp_path / "volume", diagnosis_job=DIAGNOSES),
        FakeProfiler().serving(ml.ip) as server,
    ):
        await ml.pod("trainer-0", server.port)
        for state, code in (("Done", 0), ("Failed", 0)):
            capturing = asyncio.create_task(run(mldiag, "pod/trainer-0", "--wait", "-d", "10ms", "--session", state))
            await diagnose(ml, state)
            ended = await capturing
            assert ended.code == code, ended.err
            if state == "Failed":
                assert "mldiag: no diagnosis of session Failed: the Job left no result" in ended.err
                continue
            verdict = ended.out.partition("\n\n")[2].splitlines()
            assert verdict == [
                "critical  trainer-0 arrives last",
                "          SlowHost · costs 20 ms of each step (46.00 %) · phase input · trainer-0 (rank 0, node n0)",
                "          → Look at its input.",
            ]
            assert "mldiag diagnose" not in ended.err
        without = await run(mldiag, "pod/trainer-0", "--wait", "-d", "10ms", "--session", "off", "--no-diagnosis")
        assert without.code == 0, without.err
        body = next(each for each in await captures_of(ml) if each["status"].get("sessionId") == "off")
        assert body["spec"]["triggerCapture"]["diagnosis"] == "Off"
        assert "diagnosis" not in body["status"]


async def captures_of(ml: Namespace) -> list[dict[str, Any]]:
    return [each for each in await ml.cluster.items(connections(ml.name), dict) if "status" in each]


async def diagnose(ml: Namespace, session: str) -> None:
    """Write the diagnosis of a session, whose state is its name, as the operator's controller of diagnoses does."""
    finding = {
        "code": "SlowHost",
        "severity": "critical",
        "message": "trainer-0 arrives last",
        "nextStep": "Look at its input.",
        "phase": "input",
        "costSeconds": 0.02,
        "costPercent": 46,
        "targets": [{"pod": "trainer-0", "node": "n0", "rank": 0}],
    }
    async with asyncio.timeout(DEADLINE_S):
        while True:
            waiting = [each for each in await captures_of(ml) if each["status"].get("sessionId") == session]
            if waiting and waiting[0]["status"].get("diagnosis"):
                break
            await asyncio.sleep(0.05)
    status = waiting[0]["status"]
    conditions = [
        {**each, "message": "the Job left no result"} if each["type"] == "Diagnosed" else each
        for each in status["conditions"]
    ]
    changed = {"conditions": conditions, "diagnosis": {"state": session, "findings": [finding]}}
    await ml.cluster.patch(f"{connections(ml.name)}/{waiting[0]['metadata']['name']}/status", {"status": changed})


async def test_ctrl_c_cancels_the_capture_in_the_cluster(ml: Namespace, mldiag: CommandLine, tmp_path: Path) -> None:
    command = [mldiag.script, "capture", "pod/trainer-0", "-d", "10m", "-o", "json"]
    async with operating(ml.cluster, ml.name, tmp_path / "volume"), FakeProfiler().serving(ml.ip) as server:
        await ml.pod("trainer-0", server.port)
        with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment(), pipe=True) as process:
            await asyncio.wait_for(server.began.wait(), 60)
            await asyncio.to_thread(process.wait_for, "capturing trainer-0")  # else it deletes the object
            process.press_ctrl_c()
            code, out = await asyncio.to_thread(process.end)
    assert code == INTERRUPTED, process.shown
    document: dict[str, Any] = json.loads(out)
    assert document["reason"] == "Cancelled"
    assert [each["state"] for each in document["targets"]] == ["Cancelled"]
    assert "Cancelling the capture" in process.shown


async def test_a_capture_is_opened_in_the_server_that_shows_the_operators_volume(
    ml: Namespace, mldiag: CommandLine, tmp_path: Path
) -> None:
    with suppress(Conflict):
        await ml.cluster.create(path_to("", "v1", "namespaces"), {"metadata": {"name": OPERATORS}})
    where = ("-n", OPERATORS)
    create = ("xprof", "create", "volume:///", "--on", "kubernetes", "--image", "xprof", "--claim", "c", "--no-wait")
    [server] = await asyncio.to_thread(mldiag.document, *create, *where)
    job = path_to("batch", "v1", "jobs", namespace=OPERATORS, name=f"mldiag-xprof-{server['name']}-1", sub="status")
    await ml.cluster.patch(job, {"status": {"active": 1, "ready": 1}})
    env = {**mldiag.environment(), "BROWSER": "/bin/true"}
    command = [mldiag.script, "capture", "pod/trainer-0", "-d", "10ms", "--session", "shown", "--open"]
    try:
        async with operating(ml.cluster, ml.name, tmp_path / "volume"), FakeProfiler().serving(ml.ip) as profiler:
            await ml.pod("trainer-0", profiler.port)
            with in_terminal(command, cwd=mldiag.folder, env=env) as process:
                await asyncio.to_thread(process.wait_for, "Ctrl-C ends the connection")
                process.press_ctrl_c()
                code, _ = await asyncio.to_thread(process.end)
    finally:
        await asyncio.to_thread(mldiag.lines, "xprof", "delete", server["name"], "--yes", *where)
    assert code == INTERRUPTED, process.shown
    assert f"overview_page?run={ml.name}%2Ftrainer-0%2Fshown&" in process.shown


async def test_ctrl_c_deletes_a_capture_that_no_operator_has_taken(ml: Namespace, mldiag: CommandLine) -> None:
    command = [mldiag.script, "capture", "jobset/trainer"]
    with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment()) as process:
        await asyncio.to_thread(process.wait_for, "waiting for the operator")
        assert len(await ml.cluster.items(connections(ml.name), dict)) == 1
        process.press_ctrl_c()
        code, _ = await asyncio.to_thread(process.end)
    assert code == INTERRUPTED, process.shown
    assert "deleted before it started" in process.shown
    assert "Traceback" not in process.shown
    assert await ml.cluster.items(connections(ml.name), dict) == []


async def test_an_older_resource_is_not_given_a_part_of_the_capture(ml: Namespace, api_server: ApiServer) -> None:
    body = connection("new", podName="p", fieldOfTomorrow=True)
    task = asyncio.current_task()
    assert task
    with pytest.raises(
        ClusterFailure, match=r'older version of the resource: .*"spec.triggerCapture.fieldOfTomorrow"; '
    ):
        async with connect(ClusterOptions(kubeconfig=str(api_server.kubeconfig))) as cluster:
            await create_or_withdraw(cluster, ml.name, body, Interruption(task))
    assert await ml.cluster.items(connections(ml.name), dict) == []


async def test_a_detached_capture_is_only_created(ml: Namespace, mldiag: CommandLine) -> None:
    options = ["--detach", "--ranks", "0-3", "-d", "1s", "--session", "s", "--log-directory", "gs://bucket/x"]
    ended = await run(mldiag, "jobset/trainer", *options)
    assert ended.code == 0, ended.err
    [made] = await ml.cluster.items(connections(ml.name), dict)
    assert ended.out == f"mldiagnosticsconnections.diagon.gke.io/{made['metadata']['name']}\n"
    trigger = made["spec"]["triggerCapture"]
    assert trigger["target"] == {"workloadRef": {"kind": "JobSet", "name": "trainer"}, "ranks": "0-3"}
    assert (trigger["durationMilliseconds"], trigger["sessionId"], trigger["storageLocation"]) == (
        1000,
        "s",
        "gs://bucket/x",
    )
    rejected = await run(mldiag, "jobset/trainer", "--detach", "--log-directory", "gs://bucket/../x")
    assert rejected.code == 1
    assert "storageLocation must not contain '..'" in rejected.err


async def test_pods_for_a_direct_capture_are_found_with_the_rights_of_the_user(
    ml: Namespace, mldiag: CommandLine
) -> None:
    await ml.pod("trainer-0", 9999, 10000)
    await ml.pod("trainer-1", phase="Pending")
    ended = await run(mldiag, "pod/trainer-0", "pod/trainer-1", "--direct", "--dry-run", "-o", "json")
    assert ended.code == 0, ended.err
    assert [target["stem"] for target in json.loads(ended.out)] == ["trainer-0_0", "trainer-0_1"]
    assert "trainer-1  Skipped" in ended.err
    assert [(target["host"], target["port"]) for target in json.loads(ended.out)] == [
        ("trainer-0", 9999),
        ("trainer-0", 10000),
    ]
    missing = await run(mldiag, "pod/none", "--direct")
    assert "pod/none: not in namespace" in missing.err
