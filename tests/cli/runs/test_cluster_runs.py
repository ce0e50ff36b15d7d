"""`mldiag runs` from the MLRuns of a real API server."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_cli.runs.cluster_runs import find_run_object
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from support.cluster import builders
from support.cluster.definitions import install
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

FIRST, SECOND = "4f6c" + 60 * "0", "4faa" + 60 * "0"


@pytest.fixture
def mldiag(api_server: ApiServer, namespace: str, tmp_path: Path) -> CommandLine:
    """The command line with a kubeconfig whose context has the namespace of the test."""
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (tmp_path / "kubeconfig").write_text(config)
    return CommandLine(tmp_path, env={"KUBECONFIG": str(tmp_path / "kubeconfig")})


@pytest.fixture
async def put(admin: ApiClient, namespace: str) -> Any:
    """Make an MLRun with its status."""
    await install(admin, RUNS)
    path = path_to(*RUNS.gvr, namespace=namespace)

    async def made(name: str, spec: dict[str, Any], **status: Any) -> None:
        await admin.create(
            path, {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": name}, "spec": spec}
        )
        await admin.patch(f"{path}/{name}/status", {"status": {"runId": spec["runId"], **status}})

    return made


async def test_runs_of_a_cluster_are_the_same_rows_as_those_of_files(
    mldiag: CommandLine, put: Any, admin: ApiClient, namespace: str
) -> None:
    workload = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "trainer"}
    await put(
        "trainer-4f6c",
        {"runId": FIRST, "workloadRef": workload, "runGroup": "sweep"},
        phase="Active",
        startTime="2026-11-22T10:00:00Z",
        lastHeartbeatTime="2026-11-22T10:30:00Z",
        progress={"step": 120, "stepTimeSeconds": 0.2},
        goodput={"ratio": 0.934, "asOfTime": "2026-11-22T10:29:30Z"},
        metrics={"loss": 0.5},
        aliases=["google-id"],
        configs={"user": {"lr": "0.1"}},
        attempts=[
            {
                "attempt": 0,
                "startTime": "2026-11-22T10:00:00Z",
                "endTime": "2026-11-22T10:05:00Z",
                "cause": "OutOfMemory",
                "causeMessage": "pod 'trainer-0': OOMKilled",
                "startUp": {"createdTime": "2026-11-22T10:00:00Z", "firstStepTime": "2026-11-22T10:00:42Z"},
            },
            {"attempt": 1},
        ],
        profileSessions=[{"id": "c-1", "source": "Capture", "directory": "volume:///ml/trainer"}],
        hosts={"exceptions": [{"host": "trainer-0", "reason": "Lost"}]},
    )
    other = {"runId": SECOND, "displayName": "second", "storageLocation": "volume:///ml"}
    await put("other", other, phase="Failed", startTime="2026-11-21T10:00:00Z", metrics={"loss": 0.7})
    pod = builders.pod("trainer-0", namespace=namespace)
    pod["metadata"]["labels"] = {RUN_LABEL: run_label(FIRST)}
    await admin.create(path_to("", "v1", "pods", namespace=namespace), pod)

    assert mldiag.lines("runs", "list", "-o", "name") == [FIRST, SECOND]
    assert mldiag.lines("runs", "list")[1].split()[:5] == ["trainer", FIRST[:16], "Active", "120", "200"]
    filters = ["--group", "sweep", "--phase", "active", "--since", "2026-11-22T10:10:00Z", "--limit", "1"]
    assert mldiag.lines("runs", "list", "-A", "-o", "name", *filters) == [FIRST]
    assert mldiag.run("runs", "list", "-n", "default").err.startswith("No runs in namespace 'default' of cluster")

    async with connect(ClusterOptions(kubeconfig=mldiag.env["KUBECONFIG"])) as cluster:
        for meant in ("trainer-4f6c", "trainer", "4f6", FIRST):
            assert (await find_run_object(cluster, meant))["metadata"]["name"] == "trainer-4f6c", meant
        with pytest.raises(
            ConfigurationError, match=r"nothing: no run in namespace .* has this name, or an id that st"
        ):
            await find_run_object(cluster, "nothing")
        with pytest.raises(
            ConfigurationError, match=r": 2 runs in namespace '.*' are meant: .*; pass one of these names"
        ):
            await find_run_object(cluster, "4f")
    page = "\n".join(mldiag.lines("runs", "get", "trainer", "--hosts"))
    assert mldiag.lines("runs", "get", "google-id", "-o", "name") == [FIRST]  # an alias
    for text in ("JobSet", "93.40 %", "c-1", "trainer-0", "Lost", "42", "OutOfMemory: pod"):
        assert text in page
    assert re.search(r"2026-11-22 10:00:00 UTC +5 min ", page)
    [goodput] = [line for line in page.splitlines() if line.startswith("goodput ")]
    assert re.fullmatch(r"goodput +93\.40 %, as of 2026-11-22 10:29:30 UTC, .+ ago", goodput)
    for title in ("STEP-TIME", "LAST-SEEN", "SIZE"):  # nothing has them
        assert title not in page
    [first, second] = mldiag.document("runs", "get", "trainer")["attempts"]
    assert (first["cause"], first["causeMessage"]) == ("OutOfMemory", "pod 'trainer-0': OOMKilled")
    assert sum(first["startUpSeconds"].values()) == 42
    assert (second["cause"], second["startUpSeconds"]) == (None, None)
    of_first = mldiag.document("runs", "get", "trainer")
    assert (of_first["goodput"], of_first["goodputAsOfTime"]) == (0.934, "2026-11-22T10:29:30.000000Z")
    document = mldiag.document("runs", "get", "second")
    assert (document["directory"], document["phase"]) == (f"volume:///ml/{SECOND}", "Failed")
    assert mldiag.run("runs", "watch", "other").code == 1
    compared = mldiag.document("runs", "compare", "trainer", "other")
    assert compared["lastMetrics"] == {"loss": [0.5, 0.7]}
    assert compared["configs"] == {"user.lr": ["0.1", None]}

    assert "is Active; stop its job first" in mldiag.failure("runs", "delete", "trainer")
    deleted = mldiag.run("runs", "delete", "other", "--yes", "-o", "name")
    assert deleted.out == f"{SECOND}\n", deleted.err
    assert f"The files of second are kept: volume:///ml/{SECOND}" in deleted.err
    assert mldiag.lines("runs", "list", "-o", "name") == [FIRST]


async def test_the_name_of_a_workload_means_the_run_that_goes_on_else_the_newest(
    mldiag: CommandLine, put: Any, admin: ApiClient, namespace: str
) -> None:
    workload = {"apiVersion": "batch/v1", "kind": "Job", "name": "nightly"}
    ids = [f"{n}{63 * 'f'}" for n in range(3)]
    for n, run_id in enumerate(ids):
        started, ended = f"2026-11-2{n}T10:00:00Z", {"phase": "Failed", "completionTime": f"2026-11-2{n}T11:00:00Z"}
        await put(f"nightly-{n}", {"runId": run_id, "workloadRef": workload}, startTime=started, **ended)
    await put("r-2", {"runId": ids[2]}, phase="Active", startTime="2026-11-22T10:00:00Z")  # from a late report
    assert mldiag.lines("runs", "get", "nightly", "-o", "name") == [ids[2]]
    assert mldiag.document("runs", "get", ids[2])["phase"] == "Failed"
    path = f"{path_to(*RUNS.gvr, namespace=namespace)}/nightly-0/status"
    await admin.patch(path, {"status": {"phase": "Active", "completionTime": None}})
    assert mldiag.lines("runs", "get", "nightly", "-o", "name") == [ids[0]]
    other = {"runId": SECOND, "workloadRef": {**workload, "kind": "JobSet"}}
    await put("other", other, phase="Active")
    assert "2 runs in namespace" in mldiag.failure("runs", "get", "nightly")
    for run_id, name in ((ids[0], "job/nightly"), (ids[0], "Jobs/nightly"), (SECOND, "jobset/nightly")):
        assert mldiag.lines("runs", "get", name, "-o", "name") == [run_id]
    for command in ("runs get", "runs watch", "runs compare other", "runs delete", "goodput", "trace"):
        assert "job/absent: no run in namespace" in mldiag.failure(*command.split(), "job/absent"), command
    (mldiag.folder / "mldiagnostics").mkdir()
    assert mldiag.lines("runs", "get", "job/nightly", "-o", "name") == [ids[0]], "no directory can be meant"
    (mldiag.folder / "job/nightly").mkdir(parents=True)
    assert "its run.json is missing" in mldiag.failure("runs", "get", "job/nightly"), "the directory is meant"


async def test_files_come_before_the_cluster_unless_the_cluster_is_named(
    mldiag: CommandLine, put: Any, namespace: str
) -> None:
    await put("one", {"runId": FIRST}, phase="Active")
    empty = mldiag.folder / "empty"
    empty.mkdir()
    variable = {"MLDIAG_STORAGE": str(empty)}
    assert mldiag.run("runs", "list", "--storage", "empty").err == "No runs in empty.\n"
    assert mldiag.run("runs", "list", env=variable).err == f"No runs in {empty}.\n"
    assert mldiag.lines("runs", "list", "-n", namespace, "-o", "name", env=variable) == [FIRST]
    assert "both are given" in mldiag.failure("runs", "list", "-A", "--storage", "empty", code=64)
    (mldiag.folder / "mldiagnostics").mkdir()
    assert mldiag.run("runs", "list").err == "No runs in mldiagnostics.\n"


def test_without_files_and_cluster_both_remedies_are_named(tmp_path: Path) -> None:
    nowhere = CommandLine(tmp_path, env={"HOME": "/nowhere"})
    message = nowhere.failure("runs", "list")
    assert message.startswith("mldiagnostics: no such directory, and no cluster (kubeconfig '/nowhere/.kube/config':")
    assert message.endswith("pass the root of the runs with --storage, or a cluster with --context")


async def test_an_unreadable_bucket_leaves_what_the_status_knows(mldiag: CommandLine, put: Any) -> None:
    mldiag = replace(mldiag, env={**mldiag.env, "GOOGLE_APPLICATION_CREDENTIALS": "/no/credentials"})
    for name, run_id, loss in (("one", FIRST, 0.5), ("two", SECOND, 0.7)):
        spec = {"runId": run_id, "storageLocation": "gs://runs/ml"}
        await put(name, spec, phase="Failed", progress={"step": 120}, metrics={"loss": loss})
    page = mldiag.run("runs", "get", "one")
    assert (page.code, page.err) == (0, "")
    assert "step        120" in page.out
    assert mldiag.run("runs", "watch", "one").out.splitlines()[1].split()[2:4] == ["Failed", "120"]
    compared = mldiag.run("runs", "compare", "one", "two", "--metric", "loss")
    assert compared.code == 0, compared.err
    assert ["last", "loss", "0.5", "0.7"] in [line.split() for line in compared.out.splitlines()]
    notes = compared.err.splitlines()
    reason = "curves cannot be read, so only the last values that the cluster knows are shown: "
    assert [note.partition(reason)[0] for note in notes] == ["one: ", "two: "]
    chart = mldiag.run("runs", "get", "one", "--metric", "loss")
    assert (chart.code, chart.out.splitlines()[-1]) == (0, "last loss: 0.5")
    document = mldiag.document("runs", "get", "one", "--metric", "loss", "--metric", "lr")
    assert document["lastMetrics"] == {"loss": 0.5, "lr": None}
