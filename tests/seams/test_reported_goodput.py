"""The goodput that a program reports to a real control plane stands in for records that are lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from support.cluster.control_planes import make_account, serving
from support.programs.command_line import CommandLine
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

PROGRAM = """
from mldiagnostics import machinelearning_run
with machinelearning_run("job", log_system_metrics=False) as run:
    for step in range(50):
        run.step(step)
"""


async def test_the_account_of_a_run_whose_leading_process_lost_its_records(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    programs, mldiag = Programs(tmp_path), CommandLine(tmp_path)
    async with serving(cluster, namespace, tmp_path) as plane:
        client = await plane.reporter()
        (tmp_path / "token").write_text(client.token)
        storage = tmp_path / "volume/runs"
        env = {
            "MLDIAG_RUN_ID": client.run,
            "MLDIAG_STORAGE": str(storage),
            "MLDIAG_CONTROL_PLANE_URL": plane.url,
            "MLDIAG_CONTROL_PLANE_CA": str(tmp_path / "pki/ca.crt"),
            "MLDIAG_CONTROL_PLANE_TOKEN_FILE": str(tmp_path / "token"),
            "NNODES": "2",
        }
        for rank in ("0", "1"):
            ended = await asyncio.to_thread(programs.run, PROGRAM, env={**env, "NODE_RANK": rank})
            assert ended.code == 0, ended.err
    account = ("goodput", client.run, "--storage", str(storage))
    [recorded] = await asyncio.to_thread(mldiag.document, *account)
    assert recorded["steps"]["done"] == 50
    leading = [*(storage / client.run / "records").glob("a0-r0-*.jsonl")]
    assert len([*(storage / client.run / "records").glob("*.jsonl")]) > len(leading) > 0
    for file in leading:
        file.unlink()
    [reported] = await asyncio.to_thread(mldiag.document, *account)
    assert reported["name"] == f"{storage / client.run}/reported"
    assert reported["cumulative"] == recorded["cumulative"]
