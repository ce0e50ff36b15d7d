"""Runs of Google's SDK, unchanged, from the program to every surface of the cluster."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from support.cluster.control_planes import make_account
from support.cluster.definitions import install
from support.cluster.operating import DEADLINE_S, address
from support.cluster.run_operator import leading, without_pauses
from support.programs import environments
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = [pytest.mark.apiserver, pytest.mark.peers]

PROGRAM = Path(__file__).parents[2] / "e2e/peers/self_hosted.py"
PLACE = "gs://theirs/profiles"
OPTED_IN = {"metadata": {"labels": {"managed-mldiagnostics-gke": "true"}}}


async def test_a_run_of_googles_sdk_has_the_name_and_storage_of_its_program(
    api_server: ApiServer, cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        python = await asyncio.to_thread(environments.interpreter, "peer-sdk")
        pod_ip = address()
        ip = pod_ip.__enter__()
    except (environments.Unavailable, OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no environment peer-sdk, or no address for a pod: {error}")
    without_pauses(monkeypatch)
    await install(cluster, RUNS)
    await make_account(cluster, namespace)
    mldiag = CommandLine(tmp_path, env={"KUBECONFIG": kubeconfig_of(api_server, namespace, tmp_path)})
    try:
        async with leading(cluster, namespace, tmp_path, root="volume:///runs") as operator:
            job = await operator.reporting.job()
            path = path_to("batch", "v1", "jobs", namespace=namespace, name="trainer")
            await cluster.patch(path, OPTED_IN | {"spec": {"suspend": False}})
            await operator.reporting.pod(owner=job, ip=ip)
            url = operator.peer_url.replace("127.0.0.1", ip)
            run_id = operator.reporting.run_of(job)
            ended = await asyncio.to_thread(run_program, python, url, run_id)
            assert ended.returncode == 0, ended.stderr
            run = await until(cluster, namespace, lambda run: run["status"].get("displayName") == "theirs")
            status = run["status"]
            assert (status["storageLocation"], status["reportedStorage"]) == ("volume:///runs", PLACE)
            [alias] = status["aliases"]
            place = ClusterOptions(kubeconfig=mldiag.env["KUBECONFIG"], namespace=namespace)
            assets = {"index.html": Body(b"<!doctype html>", "text/html")}
            async with (
                serving(Settings(cluster=place, port=0), assets) as page,
                aiohttp.ClientSession(page) as client,
                client.get("/api/runs") as response,
            ):
                [in_view] = (await response.json())["runs"]
            by_alias = await asyncio.to_thread(mldiag.document, "runs", "get", alias)
            by_name = await asyncio.to_thread(mldiag.document, "runs", "get", "theirs")
            [listed] = await asyncio.to_thread(mldiag.document, "runs", "list")
            for row in (by_alias, by_name, listed, in_view):
                shown = (row["runId"], row["displayName"], row["reportedStorage"], row["hosts"])
                assert shown == (run_id, "theirs", PLACE, {"reporting": None})
            lines = await asyncio.to_thread(mldiag.lines, "runs", "get", alias)
            assert "name        theirs" in lines
            assert f"recorded in {PLACE}" in lines
    finally:
        pod_ip.__exit__(None, None, None)


def kubeconfig_of(api_server: ApiServer, namespace: str, folder: Path) -> str:
    config = api_server.kubeconfig.read_text().replace("context:\n", f"context:\n    namespace: {namespace}\n", 1)
    (folder / "kubeconfig").write_text(config)
    return str(folder / "kubeconfig")


def run_program(python: Path, url: str, run_id: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), str(PROGRAM), "return", PLACE],
        env={"DIAGON_BASE_URL": url, "DIAGON_AGENT_URL": url, "DIAGON_WORKLOAD_ID": run_id, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


async def until(cluster: ApiClient, namespace: str, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Wait until there is one run, which meets the condition; return it."""
    runs: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (runs and "status" in runs[0] and holds(runs[0])):
                await asyncio.sleep(0.1)
                runs = await cluster.items(path_to(*RUNS.gvr, namespace=namespace), dict)
    except TimeoutError:
        raise AssertionError(f"the run stays {runs}") from None
    [run] = runs
    return run
