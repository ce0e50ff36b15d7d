"""Curves of one large run in a browser: the view and other programs over the same values."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from mldiagnostics.store import open_store
from playwright.async_api import Page
from support.programs.environments import OF_BENCHMARKS, REQUIREMENTS, Unavailable
from support.run_files import put_run, write_large_run

from bench.view_peers import PEERS
from bench.view_programs import (
    COMPLETE,
    COMPLETE_TRANSFER,
    DEADLINE_S,
    FIRST,
    METRICS,
    STEPS,
    Figures,
    Program,
    Traffic,
    browser_page,
    first_curve,
    served,
    until,
)

FILE_STEPS = 2600
"""Steps in a file of the SDK, which has 64 MiB."""
ZOOMS = 3
POINTS, FILES = "metrics x points", "files"
ZOOM = "zoom, to finer points in all charts on the screen"
GOALS = {FIRST: "≤ 1.5 s", COMPLETE_TRANSFER: "≤ 1 MB", ZOOM: "≤ 100 ms"}


def rows() -> list[tuple[str, ...]]:
    """Write the run for each program, open it there, and return rows: name, a figure of each program, goal."""
    columns = [_figures(program) for program in (VIEW, *PEERS)]
    missing = ["none" if FILES in column else "not measured" for column in columns]
    return [
        (
            f"large run: {name}",
            *(column.get(name, other) for column, other in zip(columns, missing, strict=True)),
            GOALS.get(name, ""),
        )
        for name in columns[0]
    ]


def _figures(program: Program) -> Figures:
    print(f"... {program.title}: {METRICS} metrics x {program.steps:,} points (1-2 minutes)", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "runs")
        folder.mkdir()
        try:
            program.write(folder)
        except Unavailable as error:
            return {POINTS: f"not measured: {str(error).splitlines()[0].rpartition('error: ')[2]}"}
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        figures = {POINTS: f"{METRICS} x {program.steps:,}", FILES: f"{size / 1e6:.0f} MB"}
        return figures | asyncio.run(program.measure(folder))


def write_runs(folder: Path) -> None:
    """Write the values as the SDK writes them."""
    put_run(open_store(str(folder)), "large", step=STEPS)
    write_large_run(
        folder / "large/records", "a0-r0-00000000", metrics=METRICS, steps=range(STEPS), file_steps=FILE_STEPS
    )


async def view(folder: Path) -> Figures:
    """Open the page of the run, wait until all is read, and zoom."""
    program = Path(sys.executable).with_name("mldiag")
    async with browser_page() as page, served(program, "view", str(folder), "--port=0", "--no-open") as server:
        traffic, opened = Traffic(page), time.monotonic()
        figures = await first_curve(page, traffic, f"{server.url}runs/runs/large", ".curve-plot canvas")
        note = page.get_by_role("status").filter(has_text=f"{METRICS} metrics")
        await note.filter(has_not_text="%").wait_for(timeout=1000 * DEADLINE_S)
        figures[COMPLETE] = f"{time.monotonic() - opened:.0f} s"
        await traffic.settled()
        figures[COMPLETE_TRANSFER] = f"{await traffic.kilobytes():.0f} kB"
        zooms = [await _zoom(page, traffic) for _ in range(ZOOMS)]
        figures[ZOOM] = f"{1000 * max(each for each, _ in zooms):.0f} ms"
        figures["transfer of a zoom"] = f"{max(each for _, each in zooms):.0f} kB"
        return {**figures, **server.usage()}


async def _zoom(page: Page, traffic: Traffic) -> tuple[float, float]:
    """Drag over the middle of a chart; return the time until all charts have their points, and the transfer."""
    box = await page.locator(".u-over").first.bounding_box()
    assert box is not None
    y, before = box["y"] + box["height"] / 2, len(traffic.ended)
    await page.mouse.move(box["x"] + 0.2 * box["width"], y)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=4)
    started = time.monotonic()
    await page.mouse.up()
    await until(lambda: any("/curves?" in request.url for request in traffic.ended[before:]))
    await traffic.settled()
    return time.monotonic() - started, await traffic.kilobytes(before)


VIEW = Program("`mldiag view`", write_runs, view)
VERSIONS = [each for each in (*REQUIREMENTS["loggers"], *OF_BENCHMARKS["aim"]) if not each.startswith("tensorboardX")]
NOTES = (
    "The large run is read once by each program, from files in the page cache; the browser reaches this machine only. "
    f"{' and '.join(VERSIONS)} run from environments of their own. The pages of the view and of trackio are opened "
    "when the server listens. Those of TensorBoard and aim are opened once the server has all metrics, because "
    "TensorBoard's does not load again by itself and aim's would not know the run; their time counts from the start of "
    "listening. Memory and CPU time include child processes; memory that they share counts for each. In brackets: the "
    "points of a curve that the page gets; the view has the lowest and the highest value of each place at any zoom. "
    "trackio parses all points for the page and sends some, of all metrics; aim samples the curves on the screen. aim "
    "has a tenth of the points, because it would take more than ten minutes to store all of them, so its figures are "
    "lower bounds."
)
