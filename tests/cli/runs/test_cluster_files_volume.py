"""Files on the operator's volume, read by a user of one namespace through a real API server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.row import run_row_of
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_view.sources.run_files import UserFiles
from support.cluster.definitions import install
from support.cluster.publications import account
from support.cluster.result_servers import READ_FILES, results_served
from support.diagnosed_sessions import put_diagnosed_session
from support.programs.command_line import CommandLine
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

RUN, OTHER_RUN = "4f6c" + 60 * "0", "81aa" + 60 * "0"
EVENTS = b"""{"job_name": "trainer", "job_start_time": 1795341600.0}
{"job_name": "trainer", "step_count": 0, "step_start_time": 1795341610.0}
{"job_name": "trainer", "step_count": 1, "step_start_time": 1795341620.0}
{"job_name": "trainer", "job_end_time": 1795341630.0}
"""
READ_RUNS = {"apiGroups": [RUNS.gvr[0]], "resources": ["mlruns"], "verbs": ["get", "list"]}


def make_volume(volume: Path, namespace: str) -> None:
    """Write a run of the namespace with a session, and one of another namespace."""
    store = open_store(str(volume))
    put_run(store, RUN, name="trainer", namespace=namespace)
    put_run(store, OTHER_RUN, name="trainer", namespace="other")
    store.put(f"{RUN}/reported/records/a0-r0-00000000-00001.jsonl", EVENTS)
    put_diagnosed_session(store, RUN, "slow", hosts=3, slow=2)
    put_records(
        store, RUN, "a0-r0-aaaaaaaa-00001", *(Record("metric", 1.0 + n, "loss", value=9.0 - n) for n in range(5))
    )


async def make_run(admin: ApiClient, namespace: str) -> None:
    await install(admin, RUNS)
    runs = path_to(*RUNS.gvr, namespace=namespace)
    body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": "trainer"}, "spec": {"runId": RUN}}
    await admin.create(runs, body)
    session = {"id": "slow", "source": "Program", "directory": f"volume:///{RUN}", "startTime": "2026-11-22T10:00:00Z"}
    status = {"runId": RUN, "phase": "Active", "profileSessions": [session], "metrics": {"loss": 5.5}}
    await admin.patch(f"{runs}/trainer/status", {"status": status})


async def test_a_user_of_the_namespace_needs_no_right_in_that_of_the_operator(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    make_volume(volume, namespace)
    await make_run(admin, namespace)
    rules = [(namespace, READ_FILES), (namespace, READ_RUNS)]
    async with results_served(admin, namespace, volume), account(api_server, admin, namespace, rules) as user:
        config = yaml.safe_load(Path(api_server.kubeconfig).read_text())  # noqa: ASYNC240 - a small file of the test
        config["users"][0]["user"] = {"token": await user.access.token()}
        config["contexts"][0]["context"]["namespace"] = namespace
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        mldiag = CommandLine(tmp_path, env={"KUBECONFIG": str(tmp_path / "kubeconfig"), "ML_GOODPUT_CACHE_DIR": "c"})

        async def document(*arguments: str) -> Any:
            return await asyncio.to_thread(mldiag.document, *arguments)

        [copied] = await document("profiles", "download", "trainer/slow", "--to", "copy")
        stored = [entry.bytes for entry in open_store(str(volume)).list(f"{RUN}/plugins/profile/slow")]
        assert (copied["session"], copied["bytes"]) == ("slow", sum(stored))
        assert copied["files"] == len(stored) == 7  # three traces, their summaries and the diagnosis
        by_place = f"volume:///{RUN}/slow"
        [same] = await document("profiles", "download", by_place, "-n", namespace, "--to", "copy")
        assert same == copied
        diagnosis = await document("diagnose", "trainer/slow")
        assert [each["name"] for each in diagnosis["findings"][0]["hosts"]] == ["host-2"]
        [report] = await document("goodput", "trainer")
        assert report["steps"]["count"] == 1
        charted = await document("runs", "get", "trainer", "--metric", "loss")
        assert [curve["value"] for curve in charted["series"]] == [[9.0, 8.0, 7.0, 6.0, 5.0]]
        both = ("runs", "compare", "trainer", "trainer")
        compared = await document(*both, "--metric", "loss")
        assert (compared["series"]["loss"][1]["count"], compared["lastMetrics"]) == (5, {"loss": [5.0, 5.0]})
        assert (await document(*both))["lastMetrics"] == {"loss": [5.5, 5.5]}, "no files of a volume are copied"
        unrecorded = await asyncio.to_thread(mldiag.failure, "runs", "get", "trainer", "--metric", "los")
        assert unrecorded == "--metric los: rank 0 has not recorded it; its metrics are: loss"
        elsewhere = ("profiles", "download", f"volume:///{OTHER_RUN}/s", "-n", namespace)
        message = await asyncio.to_thread(mldiag.failure, *elsewhere)
        assert f"not the directory of a run or a profile session of namespace {namespace}" in message

        files = UserFiles(user, cluster="cluster 'lab'")
        folder = await files.directory(
            run_row_of(await admin.get(f"{path_to(*RUNS.gvr, namespace=namespace)}/trainer"))
        )
        assert [entry.key for entry in open_store(folder).list("")][-1] == "run.json"
        await files.aclose()


async def test_where_the_volume_cannot_be_read_a_chart_gives_way_to_the_last_values(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_run(admin, namespace)  # and no pod of an operator
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (tmp_path / "kubeconfig").write_text(config)
    mldiag = CommandLine(tmp_path, env={"KUBECONFIG": str(tmp_path / "kubeconfig")})
    for command in (("get", "trainer"), ("compare", "trainer", "trainer")):
        shown = await asyncio.to_thread(mldiag.run, "runs", *command, "--metric", "loss")
        assert shown.code == 0, shown.err
        assert [line for line in shown.out.splitlines() if line.startswith("last loss")]
        assert "trainer: curves cannot be read, so only the last values that the cluster knows are shown" in shown.err
        assert "no pod of the operator runs in cluster" in shown.err
