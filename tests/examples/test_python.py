"""Examples for Python users: the official client, a real API server, an operator and profiler servers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from support.cluster import kinds
from support.cluster.definitions import connections, install
from support.cluster.namespaces import Stage
from support.cluster.operating import Namespace, address, operating
from support.servers.profiler_servers import FakeProfiler
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

EXAMPLES = Path(__file__).parents[2] / "examples/python"
LIMIT_S = 200
RUN = {"phase": "Active", "progress": {"step": 7}}


@pytest.fixture
async def ml(admin: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Namespace]:
    """A namespace with a JobSet of two hosts, its run, and an operator."""
    await install(admin)
    await install(admin, RUNS)
    with address() as ip:
        ml = Namespace(admin, namespace, ip)
        async with operating(admin, namespace, tmp_path / "volume"), FakeProfiler().serving(ip) as server:
            workload = await kinds.jobset(Stage(ml, str(server.port)), parts=[("workers", 1, 2)])
            owner = {"apiVersion": workload["apiVersion"], "kind": "JobSet", "name": workload["metadata"]["name"]}
            run = {"runId": "a" * 64, "workloadRef": owner}
            body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "spec": run, "status": RUN}
            await ml.put(path_to(*RUNS.gvr, namespace=namespace), {"metadata": {"name": "trainer-1"}, **body})
            yield ml


def run_python(api_server: ApiServer, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the examples, with the kubeconfig of the administrator."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**of_programs(), "KUBECONFIG": str(api_server.kubeconfig), "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


async def test_the_program_prints_the_result_and_the_run(ml: Namespace, api_server: ApiServer, tmp_path: Path) -> None:
    line = (str(EXAMPLES / "captures.py"), "trainer", "--namespace", ml.name, "--seconds", "1")
    ended = await asyncio.to_thread(run_python, api_server, tmp_path, *line)
    assert ended.returncode == 0, ended.stderr
    phase, *hosts, directory, run = ended.stdout.splitlines()
    assert phase.startswith("Succeeded: ")
    assert [host.partition(": ")[2].split(",")[0] for host in hosts] == ["Captured", "Captured"]
    assert directory.startswith("xprof --logdir volume:///")
    assert run == "run trainer-1: Active"
    [capture] = await ml.cluster.items(connections(ml.name), captures_of_python)
    assert capture["status"]["targets"]["captured"] == 2


async def test_the_cells_of_the_notebook_run_in_order(ml: Namespace, api_server: ApiServer, tmp_path: Path) -> None:
    document = json.loads((EXAMPLES / "captures.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    source = "\n".join(cells).replace('"ml", "trainer"', f'"{ml.name}", "trainer"')
    result = 'print(json.dumps([status["phase"], rows, run["status"]]))'
    program = tmp_path / "cells.py"
    program.write_text(f"import json\n{source}\n{result}\n")
    ended = await asyncio.to_thread(run_python, api_server, tmp_path, str(program))
    assert ended.returncode == 0, ended.stderr
    phase, rows, run = json.loads(ended.stdout)
    assert (phase, [(row["rank"], row["state"]) for row in rows]) == ("Succeeded", [(0, "Captured"), (1, "Captured")])
    assert run == RUN


async def test_a_capture_that_is_deleted_ends_the_wait(ml: Namespace, api_server: ApiServer, tmp_path: Path) -> None:
    program = tmp_path / "waiting.py"
    program.write_text(
        "import captures\n"
        "api = captures.connect()\n"
        f"made = captures.create_capture(api, {ml.name!r}, {{'selector': {{'matchLabels': {{'a': 'b'}}}}}}, "
        "waitForPodsSeconds=600)\n"
        "captures.wait_for(api, made)\n"
    )
    waiting = asyncio.create_task(asyncio.to_thread(run_python, api_server, tmp_path, str(program)))
    made: list[dict[str, Any]] = []
    while not made and not waiting.done():
        made = await ml.cluster.items(connections(ml.name), captures_of_python)
        await asyncio.sleep(0.1)
    if made:
        await ml.delete(made[0]["metadata"]["name"])
    ended = await waiting
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].endswith(": was deleted")


def captures_of_python(item: dict[str, Any]) -> dict[str, Any] | None:
    """Return a capture of the example; None for others."""
    return item if item["metadata"]["name"].startswith("python-") else None
