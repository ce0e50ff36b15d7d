"""The command of a program is shown as recorded by the command line and by the view, without its secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from support.programs.command_line import CommandLine
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from mldiagnostics import machinelearning_run
with machinelearning_run("commanded", run_workload_id="commanded", log_system_metrics=False):
    pass
"""


async def test_the_arguments_of_a_run_are_shown_without_secrets(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    ended = programs.run(PROGRAM, "--lr", "0.1", "--hf-token", "hunter2", "name=a b")
    assert ended.code == 0, ended.err
    line = CommandLine(tmp_path, env={"MLDIAG_STORAGE": programs.storage})
    software = line.document("runs", "get", "commanded")["configs"]["software"]
    assert software["arguments"] == "--lr 0.1 --hf-token '<secret>' 'name=a b'"
    command = f"{software['command']} {software['arguments']}"
    assert f"command     {command}" in line.lines("runs", "get", "commanded")
    page = {"index.html": Body(b"<!doctype html>", "text/html")}
    async with serving(Settings(roots=(programs.storage,), port=0), page) as url, aiohttp.ClientSession(url) as client:
        shown = await client.get("/api/runs/storage/commanded")
        assert (await shown.json())["configs"]["software"] == software
