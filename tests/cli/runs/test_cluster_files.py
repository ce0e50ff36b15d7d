"""Files of runs of a real API server: the same rows and reports by the name of an MLRun as by a directory."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics.store import open_store
from mldiagnostics.text.timestamps import timestamp
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster.definitions import install
from support.cluster.grants import grant
from support.programs.command_line import CommandLine
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

RUN, ON_VOLUME = "4f6c" + 60 * "0", "81aa" + 60 * "0"
EVENTS = b"""{"job_name": "trainer", "job_start_time": 1795341600.0}
{"job_name": "trainer", "step_count": 0, "step_start_time": 1795341610.0}
{"job_name": "trainer", "step_count": 1, "step_start_time": 1795341620.0}
{"job_name": "trainer", "job_end_time": 1795341630.0}
"""
LIMIT_S = 60
CAPTURE = {"source": "Capture", "capture": "try", "startTime": "2026-11-22T10:00:00Z"}


@pytest.fixture
async def mldiag(
    api_server: ApiServer, admin: ApiClient, namespace: str, bucket_url: str, tmp_path: Path
) -> CommandLine:
    """The command line beside two MLRuns: one with its files in a bucket, one on the operator's volume."""
    await install(admin, RUNS)
    runs = path_to(*RUNS.gvr, namespace=namespace)
    root = bucket_url
    elsewhere = {**CAPTURE, "id": "elsewhere", "directory": f"{bucket_url}-other"}
    here = {**CAPTURE, "id": "here", "directory": f"{root}/{RUN}"}
    there = {**CAPTURE, "id": "there", "directory": "volume:///ml/second"}
    for name, run_id, spec, sessions in (
        ("trainer", RUN, {"storageLocation": root}, [elsewhere, here]),
        ("second", ON_VOLUME, {}, [there]),
    ):
        body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": name}}
        await admin.create(runs, {**body, "spec": {"runId": run_id, **spec}})
        status = {"runId": run_id, "phase": "Active", "profileSessions": sessions}
        await admin.patch(f"{runs}/{name}/status", {"status": status})
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (tmp_path / "kubeconfig").write_text(config)
    return CommandLine(tmp_path, env={"KUBECONFIG": str(tmp_path / "kubeconfig"), "ML_GOODPUT_CACHE_DIR": "cache"})


def put_files(root: str) -> str:
    """Write the files of the run; return its directory."""
    store = open_store(root)
    put_run(store, RUN, name="trainer")
    for host in ("host-0", "host-1"):
        store.put(f"{RUN}/plugins/profile/here/{host}.xplane.pb", b"trace")
    store.put(f"{RUN}/plugins/profile/here/capture.json", b'{"targets": [{"state": "Captured"}]}')
    open_store(f"{root}-other").put("plugins/profile/elsewhere/host-0.xplane.pb", b"other trace")
    store.put(f"{RUN}/reported/records/a0-r0-00000000-00001.jsonl", EVENTS)
    return f"{root}/{RUN}"


def test_profiles_goodput_and_trace_of_a_run_by_its_name(mldiag: CommandLine, bucket_url: str) -> None:
    directory = put_files(bucket_url)
    rows = {row["session"]: row for row in mldiag.document("profiles", "list", "trainer")}
    [own] = mldiag.document("profiles", "list", directory)
    assert rows["here"] == own
    assert (rows["elsewhere"]["bytes"], rows["elsewhere"]["kind"]) == (0, "capture")
    every: list[dict[str, Any]] = mldiag.document("profiles", "list")
    assert {row["session"] for row in every} == {"here", "elsewhere", "there"}
    copied = mldiag.document("profiles", "download", "trainer/here", "trainer/elsewhere", "--to", "copy")
    assert [(each["session"], each["bytes"]) for each in copied] == [("here", 46), ("elsewhere", 11)]
    assert (mldiag.folder / "copy/plugins/profile/elsewhere/host-0.xplane.pb").read_bytes() == b"other trace"

    [report] = mldiag.document("goodput", "trainer")
    [same] = mldiag.document("goodput", f"{directory}/reported")
    assert report["name"] == f"{directory}/reported"
    assert report["cumulative"] == same["cumulative"]
    assert report["steps"]["count"] == 1

    [trace] = mldiag.document("trace", "trainer", "--out", "run.json.gz")
    events = json.loads(gzip.decompress((mldiag.folder / "run.json.gz").read_bytes()))["traceEvents"]
    assert trace["events"] > 0
    assert {"trainer: goodput", "trainer: profiles"} <= {event["args"].get("name") for event in events}


ENDED = {"phase": "Failed", "reason": "WorkloadDeleted", "completionTime": "2026-11-22T10:01:00Z"}
HELD = {"phase": "Pending", "reason": "Suspended", "attempts": [{"attempt": 0, "endTime": ENDED["completionTime"]}]}


@pytest.mark.parametrize("bucket_url", ["gs"], indirect=True)
@pytest.mark.parametrize("status", [ENDED, HELD], ids=["ended", "held back"])
async def test_the_account_of_a_run_that_ended_or_is_held_back_ends_there(
    mldiag: CommandLine, admin: ApiClient, namespace: str, bucket_url: str, status: dict[str, Any]
) -> None:
    started = 1795341600.0  # 2026-11-22T10:00:00Z
    steps = [{"job_name": "trainer", "step_count": n, "step_start_time": started + n} for n in range(31)]
    events = [{"job_name": "trainer", "job_start_time": started}, *steps]  # killed: no end
    records = "".join(f"{json.dumps(event)}\n" for event in events).encode()
    store = open_store(bucket_url)
    store.put(f"{RUN}/reported/records/a0-r0-00000000-00001.jsonl", records)
    path = f"{path_to(*RUNS.gvr, namespace=namespace)}/trainer/status"
    [going_on] = mldiag.document("goodput", "trainer")
    assert going_on["hang"]["suspected"]
    await admin.patch(path, {"status": status})
    [report] = mldiag.document("goodput", "trainer")
    assert (report["asOfTime"], report["cumulative"]["elapsedSeconds"]) == (timestamp(started + 60), 60)
    assert report["cumulative"]["goodput"] == 0.5
    assert not report["hang"]["suspected"]
    assert report["stopped"].startswith(status["reason"])
    [earlier] = mldiag.document("goodput", "trainer", "--now", str(started + 40))
    assert earlier["cumulative"]["elapsedSeconds"] == 40


@pytest.mark.parametrize("bucket_url", ["gs"], indirect=True)
async def test_independent_processes_have_no_account_also_if_they_record_steps(
    mldiag: CommandLine, admin: ApiClient, namespace: str, bucket_url: str
) -> None:
    open_store(bucket_url).put(f"{RUN}/records/a0-r0-00000000-00001.jsonl", EVENTS)
    for name in ("trainer", "second"):  # the files of the second one cannot be read
        path = f"{path_to(*RUNS.gvr, namespace=namespace)}/{name}/status"
        await admin.patch(path, {"status": {"independent": True}})
        wanted = f"{name}: no rank leads its processes, such as those of a Deployment, so it has no account of goodput"
        assert mldiag.failure("goodput", name).startswith(wanted)
        assert mldiag.document("runs", "get", name)["independent"] is True


@pytest.mark.parametrize("bucket_url", ["gs"], indirect=True)
async def test_the_files_of_a_run_are_below_the_operators_default_root(
    mldiag: CommandLine, admin: ApiClient, namespace: str, bucket_url: str
) -> None:
    root = f"{bucket_url}-default"
    open_store(root).put(f"{ON_VOLUME}/reported/records/a0-r0-00000000-00001.jsonl", EVENTS)
    policies = path_to("", "v1", "configmaps", namespace=namespace)
    labels = {"app.kubernetes.io/part-of": "mldiagnostics"}
    data = {"policy.json": json.dumps({"defaultStorage": root})}
    body = {"metadata": {"name": "policy", "labels": labels}, "data": data}
    policy = await admin.create(policies, body)
    try:
        [report] = mldiag.document("goodput", "second")
    finally:
        await admin.delete(f"{policies}/policy", uid=policy["metadata"]["uid"])
    assert report["name"] == "second"


@pytest.mark.parametrize("bucket_url", ["gs"], indirect=True)
async def test_the_status_of_a_run_names_the_root_for_users_without_a_right_on_the_policy(
    mldiag: CommandLine, admin: ApiClient, namespace: str, bucket_url: str
) -> None:
    root = f"{bucket_url}-default"
    open_store(root).put(f"{ON_VOLUME}/reported/records/a0-r0-00000000-00001.jsonl", EVENTS)
    path = f"{path_to(*RUNS.gvr, namespace=namespace)}/second/status"
    await admin.patch(path, {"status": {"storageLocation": root}})
    config = yaml.safe_load((mldiag.folder / "kubeconfig").read_text())
    config["users"][0]["user"]["as"] = "jane"
    (mldiag.folder / "kubeconfig").write_text(yaml.safe_dump(config))
    await grant(admin, namespace, "jane", {"apiGroups": ["diagon.gke.io"], "resources": ["mlruns"], "verbs": ["*"]})
    async with asyncio.timeout(LIMIT_S):
        while (await asyncio.to_thread(mldiag.run, "runs", "list")).code:  # noqa: ASYNC110 - rights are new
            await asyncio.sleep(0.2)
    [report] = await asyncio.to_thread(mldiag.document, "goodput", "second")
    assert report["name"] == f"{root}/{ON_VOLUME}/reported"
    shown = await asyncio.to_thread(mldiag.document, "runs", "get", "second")
    assert (shown["storageLocation"], shown["directory"]) == (root, f"{root}/{ON_VOLUME}")


@pytest.mark.parametrize("bucket_url", ["gs"], indirect=True)
def test_files_that_cannot_be_read_are_named_with_the_reason(mldiag: CommandLine) -> None:
    directory = "volume:///ml/second"
    session = f"{directory}/plugins/profile/there"
    [row] = mldiag.document("profiles", "list", "second")
    assert row["url"] == session
    for command in (
        ("profiles", "download", "second/there"),
        ("profiles", "get", f"{directory}/there"),
    ):
        assert mldiag.failure(*command).startswith(f"{session}: no pod of the operator runs in cluster")
    for command in (("goodput", "second"), ("trace", "second")):
        assert mldiag.failure(*command).startswith(f"volume:///{ON_VOLUME}: no pod of the operator runs in cluster")
    assert "which only the operator writes" in mldiag.failure("profiles", "delete", "second/there", "--yes")
    assert f"{directory}: the operator's volume cannot be listed" in mldiag.failure("profiles", "list", directory)
    other = ("profiles", "download", f"{directory}/there", "--storage", ".")
    assert mldiag.failure(*other).startswith(f"{session}: no pod of the operator runs in cluster")
