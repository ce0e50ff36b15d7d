"""Every command line of xprofiler's documentation that hosts TensorBoard, by gcloud and in a real API server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_ports
from mldiagnostics_kube.client.apiserver import Conflict, path_to
from support.programs.command_line import CommandLine
from support.programs.gcloud import PAGE, calls, open_page, recorded_gcloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

GKE = "xprofiler"


@pytest.fixture
def xprofiler(mldiag: CommandLine) -> Iterator[CommandLine]:
    """The script `mldiag-xprofiler` with a gcloud in its path."""
    with recorded_gcloud(mldiag.folder) as env:
        yield CommandLine(mldiag.folder, mldiag.script.with_name("mldiag-xprofiler"), env=env)


def test_the_documented_lines_host_a_directory_on_a_virtual_machine(xprofiler: CommandLine) -> None:
    [made] = rows(xprofiler, "create -z us-central1-a -l gs://bucket/run -n xprof-run -m e2-highmem-4 -v")
    assert made[:4] == ["xprof-run", "gce", "Running", "gs://bucket/run"]
    [again] = rows(xprofiler, "create --zone us-central1-a --log-directory gs://bucket/run/ --skip-creation-if-exists")
    [shown] = rows(xprofiler, "create -z us-central1-a -l gs://bucket/run")
    assert made[0] == again[0] == shown[0], "without a terminal the first is shown"
    [unnamed] = rows(xprofiler, "create -z us-east5-a -l gs://bucket/other --auto-delete-on-failure-off")
    assert unnamed[0].startswith("xprof-")
    assert lines(xprofiler, "--abbrev list -z us-central1-a us-east5-a") == ["xprof-run", unnamed[0]]
    assert lines(xprofiler, "-a list -z us-east5-a -v") == [unnamed[0]]
    assert lines(xprofiler, "-a list -l gs://bucket/run gs://bucket/none -f status=RUNNING name:x*") == ["xprof-run"]
    assert len(rows(xprofiler, f"list -l gs://bucket/run -n {unnamed[0]}")) == len([made, unnamed])
    [port] = free_ports(1)
    connect = f"connect -l gs://bucket/run -z us-central1-a -m ssh -p {port} --host-port 6006 -u -v"
    assert open_page(xprofiler, *connect.split()) == PAGE
    assert lines(xprofiler, "connect -l gs://bucket/run -z us-central1-a --mode proxy --disconnect") == []
    confirm = failure(xprofiler, "delete -z us-central1-a -l gs://bucket/run")
    assert confirm.endswith("no terminal to confirm it; pass --quiet")
    assert "no server of XProf has this name" in failure(xprofiler, "delete -z us-central1-a -n other -q")
    assert lines(xprofiler, "delete -z us-central1-a -n xprof-run --quiet -v") == ["xprof xprof-run deleted"]

    recorded = calls(xprofiler.folder)
    creations = [call for call in recorded if "create" in call]
    assert [call[3:6] for call in creations] == [
        ["xprof-run", "--zone=us-central1-a", "--machine-type=e2-highmem-4"],
        [unnamed[0], "--zone=us-east5-a", "--machine-type=c4-highmem-8"],
    ]
    assert "--zones=us-central1-a,us-east5-a" in {argument for call in recorded for argument in call}
    filters = "--filter=labels.mldiag-xprof=true AND (status=RUNNING) AND (name:x*)"
    assert filters in {argument for call in recorded for argument in call}
    [ssh] = [call for call in recorded if "ssh" in call]
    assert ssh[-1] == f"{port}:localhost:8791"


@pytest.mark.apiserver
async def test_the_documented_lines_host_a_directory_on_kubernetes(
    xprofiler: CommandLine, api_server: ApiServer, admin: ApiClient
) -> None:
    with suppress(Conflict):
        await admin.create(path_to("", "v1", "namespaces"), {"metadata": {"name": GKE}})
    env = {"KUBECONFIG": str(api_server.kubeconfig)}
    line = "create -z us-central1-a -l gs://bucket/run -n trainer --gke --image xprof:2.24"
    made = asyncio.create_task(asyncio.to_thread(lines, xprofiler, line, env=env))
    pod = (await become_ready(admin, "mldiag-xprof-trainer-1"))["spec"]["template"]["spec"]
    assert (await made)[1].split()[:2] == ["trainer", "kubernetes"]
    assert pod["serviceAccountName"] == "xprofiler"
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "6", "memory": "48Gi"}
    assert lines(xprofiler, "-a list --gke -z z -l gs://bucket/run", env=env) == ["trainer"]
    assert lines(xprofiler, "-a list --gke -n other", env=env) == []
    deleted = lines(xprofiler, "delete -z z -l gs://bucket/run --gke -q", env=env)
    assert deleted == ["xprof trainer deleted"]


def test_what_cannot_be_done_is_said(xprofiler: CommandLine) -> None:
    message = failure(xprofiler, "list -z z --gke -f labels.team=a", code=64)
    assert message.startswith("--filter labels.team=a: is a filter of gcloud, which --gke does not use; use --vm-name")
    assert failure(xprofiler, "delete -z z", code=64).startswith("--vm-name or --log-directory: neither is given")
    assert failure(xprofiler, "create -z z -l gs://b/r --gke", code=64).startswith("--image: is not given")
    on_volume = failure(xprofiler, "create -z z -l volume:///ml/run --gke --image xprof")
    assert on_volume.startswith("volume:///ml/run: not in a bucket; pass gs://bucket/path, or show the operator's")
    assert "logs: a virtual machine cannot read it; pass gs://bucket" in failure(xprofiler, "create -z z -l logs")
    (xprofiler.folder / "gcloud").unlink()
    for line in ("create -z z -l gs://b/r", "connect -z z -l gs://b/r"):
        assert xprofiler.failure(*line.split(), env={"PATH": str(xprofiler.folder)}) == (
            "gcloud: not installed here; install the Google Cloud CLI, or host XProf on this machine or on Kubernetes "
            "with `mldiag xprof`"
        )


def rows(xprofiler: CommandLine, line: str) -> list[list[str]]:
    """Return the cells of the table that a command line prints."""
    return [row.split() for row in lines(xprofiler, line)[1:]]


def lines(xprofiler: CommandLine, line: str, env: dict[str, str] | None = None) -> list[str]:
    return xprofiler.lines(*line.split(), env=env)


def failure(xprofiler: CommandLine, line: str, code: int = 1) -> str:
    return xprofiler.failure(*line.split(), code=code)


async def become_ready(admin: ApiClient, name: str) -> dict[str, Any]:
    """Report the pod of a Job as ready once the Job exists, as its controller does; return the Job."""
    path = path_to("batch", "v1", "jobs", namespace=GKE)
    while name not in await admin.names(path, most=9):  # noqa: ASYNC110 - the change is in another process
        await asyncio.sleep(0.05)
    return await admin.patch(f"{path}/{name}/status", {"status": {"active": 1, "ready": 1}})
