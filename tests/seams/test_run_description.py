"""Name, tags and notes of a run are those of the program until people change them, on every surface."""

from __future__ import annotations

import asyncio
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
import pathlib
import time
from mldiagnostics import machinelearning_run
run = machinelearning_run("own", tags=["mine", "s3://u:secret@b"], notes="of the program", run_workload_id="described",
                          log_system_metrics=False)
with run:
    print("started", flush=True)
    while not pathlib.Path("end").exists():
        time.sleep(0.1)
"""


async def test_words_of_people_count_before_those_of_a_running_program(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    line = CommandLine(tmp_path, env={"MLDIAG_STORAGE": programs.storage})
    page = {"index.html": Body(b"<!doctype html>", "text/html")}
    async with serving(Settings(roots=(programs.storage,), port=0), page) as url, aiohttp.ClientSession(url) as client:

        async def shown(words: tuple[str, list[str], str | None]) -> None:
            """Wait until the view shows the words, and compare the command line."""
            async with asyncio.timeout(60):
                while True:
                    listed = (await (await client.get("/api/runs")).json())["runs"]
                    if [(run["displayName"], run["tags"], run["notes"]) for run in listed] == [words]:
                        break
                    await asyncio.sleep(0.1)
            run = (await (await client.get("/api/runs/storage/described")).json())["run"]
            got = await asyncio.to_thread(line.document, "runs", "get", "described")
            [row] = await asyncio.to_thread(line.document, "runs", "list")
            for each in (run, got, row):
                assert (each["displayName"], each["tags"], each["notes"]) == words

        with programs.started(PROGRAM, env={"MLDIAG_HEARTBEAT_SECONDS": "0.5"}) as program:
            program.says("started")
            await shown(("own", ["mine", "s3://u:<secret>@b"], "of the program"))
            edit = ("runs", "edit", "own", "--name", "baseline", "--add-tag", "b", "--notes", "first")
            await asyncio.to_thread(line.lines, *edit)
            await shown(("baseline", ["mine", "s3://u:<secret>@b", "b"], "first"))
            (tmp_path / "end").touch()
            assert program.end().code == 0
        await shown(("baseline", ["mine", "s3://u:<secret>@b", "b"], "first"))
