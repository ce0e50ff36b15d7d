"""Texts that a program records are shown as recorded by the command line and by the view."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import aiohttp
import pytest
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from support.programs.command_line import CommandLine
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
from mldiagnostics import machinelearning_run, metrics
with machinelearning_run("noted", run_workload_id="noted", log_system_metrics=False) as run:
    for step in range(205):
        metrics.record("sample", f"text {step} \\u00e9", step=step)
    metrics.record("loss", 0.5, labels={"split": '"payload":{"message":"no text"}'})
    metrics.record("table", {"message": 1})
    metrics.record("note", 'line "one"\\nuses password=hunter2')
"""
NOTE = 'line "one"\nuses password=<secret>'


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    programs = Programs(tmp_path_factory.mktemp("noted"))
    ended = programs.run(PROGRAM)
    assert ended.code == 0, ended.err
    return programs.storage


def test_the_command_line_shows_the_newest_texts(storage: str, tmp_path: Path) -> None:
    line = CommandLine(tmp_path, env={"MLDIAG_STORAGE": storage})
    texts = line.document("runs", "get", "noted", "--texts")["texts"]
    assert (texts["total"], len(texts["newest"])) == (206, 200)
    assert [texts["newest"][-1][key] for key in ("name", "text", "step")] == ["note", NOTE, None]
    assert [texts["newest"][0][key] for key in ("name", "text", "step", "rank")] == ["sample", "text 6 é", 6, 0]
    shown = line.lines("runs", "get", "noted", "--texts")
    assert "200 of 206 recorded texts" in shown
    assert sum("text 7 é" in each for each in shown) == 1
    assert "texts" not in line.document("runs", "get", "noted")


async def test_the_view_shows_the_same_texts(storage: str, tmp_path: Path) -> None:
    wanted = CommandLine(tmp_path, env={"MLDIAG_STORAGE": storage}).document("runs", "get", "noted", "--texts")["texts"]
    page = {"index.html": Body(b"<!doctype html>", "text/html")}
    async with serving(Settings(roots=(storage,), port=0), page) as url, aiohttp.ClientSession(url) as client:
        complete = False
        while not complete:
            async with client.get("/api/runs/storage/noted/texts") as response:
                shown = json.loads(await response.text())
            complete = shown.pop("progress")["complete"]
    assert shown == wanted
