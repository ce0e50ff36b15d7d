"""Curves of one large run in a browser: the view and TensorBoard over the same values."""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from mldiagnostics.sinks.event_frames import frames, scalar_event, version_event
from mldiagnostics.store import open_store
from playwright.async_api import Page, async_playwright
from playwright.async_api import Request as PageRequest
from support.browser import REMEDY, executable
from support.run_files import START_S, metric_name, put_run, write_large_run

from bench.process_usage import cpu_seconds, peak_rss_mib

METRICS, STEPS = 200, 100_000
FILE_STEPS = 2600
"""Steps in a file of the SDK, which has 64 MiB."""
BINARIES = Path(sys.executable).parent
ZOOMS = 3
DEADLINE_S = 240.0


def rows() -> list[tuple[str, str, str, str]]:
    """Write the run, open it in both programs, and return a table."""
    with tempfile.TemporaryDirectory() as folder:
        runs, events = Path(folder, "runs"), Path(folder, "events")
        print(f"... a run of {METRICS} metrics x {STEPS:,} points in two formats (a minute)", flush=True)
        put_run(open_store(str(runs)), "large", step=STEPS)
        records = runs / "large/records"
        write_large_run(records, "a0-r0-00000000", metrics=METRICS, steps=range(STEPS), file_steps=FILE_STEPS)
        write_events(events / "large")
        print("... the view reads it (a minute)", flush=True)
        view = {"files": _size(runs), **asyncio.run(_view(runs))}
        print("... TensorBoard reads it (a minute)", flush=True)
        peer = {"files": _size(events), **asyncio.run(_tensorboard(events))}
    run = f"{METRICS} metrics of {STEPS:,} points"
    return [(f"{run}: {name}", view[name], peer.get(name, "none"), GOALS.get(name, "")) for name in view]


GOALS = {
    "page opened to the first curve": "≤ 1.5 s",
    "transfer until all points are read": "≤ 1 MB",
    "zoom, to finer points in all charts on the screen": "≤ 100 ms",
}


async def _view(runs: Path) -> dict[str, str]:
    async with _page() as page, _program("mldiag", "view", str(runs), "--port=0", "--no-open") as (url, server):
        traffic, opened = Traffic(page), time.monotonic()
        await page.goto(f"{url}runs/runs/large")
        await page.locator(".curve-plot canvas").first.wait_for()
        first_s, first_kb = time.monotonic() - opened, await traffic.kilobytes()
        note = page.get_by_role("status").filter(has_text=f"{METRICS} metrics")
        await note.filter(has_not_text="%").wait_for(timeout=1000 * DEADLINE_S)
        complete_s = time.monotonic() - opened
        await traffic.settled()
        complete_kb = await traffic.kilobytes()
        zooms = [await _zoom(page, traffic) for _ in range(ZOOMS)]
        return {
            "page opened to the first curve": f"{first_s:.2f} s",
            "transfer until the first curve": f"{first_kb:.0f} kB",
            "page opened until all points are read": f"{complete_s:.0f} s",
            "transfer until all points are read": f"{complete_kb:.0f} kB",
            "zoom, to finer points in all charts on the screen": f"{1000 * max(each for each, _ in zooms):.0f} ms",
            "transfer of a zoom": f"{max(each for _, each in zooms):.0f} kB",
            **_usage(server),
        }


async def _zoom(page: Page, traffic: "Traffic") -> tuple[float, float]:
    """Drag over the middle of a chart; return the time until all charts have their points, and the transfer."""
    box = await page.locator(".u-over").first.bounding_box()
    assert box is not None
    y, before = box["y"] + box["height"] / 2, len(traffic.ended)
    await page.mouse.move(box["x"] + 0.2 * box["width"], y)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=4)
    started = time.monotonic()
    await page.mouse.up()
    await _until(lambda: any("/curves?" in request.url for request in traffic.ended[before:]))
    await traffic.settled()
    return time.monotonic() - started, await traffic.kilobytes(before)


async def _tensorboard(events: Path) -> dict[str, str]:
    arguments = ("--logdir", str(events), "--port=0", "--load_fast=true")
    async with _page() as page, _program("tensorboard", *arguments) as (url, server):
        listening = time.monotonic()
        curve = f"{url}data/plugin/scalars/scalars?{urlencode({'run': 'large', 'tag': metric_name(METRICS - 1)})}"
        await _until(
            lambda: bool(_points(curve))
        )  # a page that is opened before shows nothing, and does not load again
        traffic = Traffic(page)
        await page.goto(f"{url}#timeseries")
        await page.locator("line-chart").first.wait_for(timeout=1000 * DEADLINE_S)
        first_s, first_kb = time.monotonic() - listening, await traffic.kilobytes()
        await _until(lambda: _points(curve)[-1][1] == STEPS - 1)
        complete_s = time.monotonic() - listening
        return {
            "page opened to the first curve": f"{first_s:.2f} s",
            "transfer until the first curve": f"{first_kb:.0f} kB",
            "page opened until all points are read": f"{complete_s:.0f} s ({len(_points(curve))} of a curve kept)",
            **_usage(server),
        }


def _points(curve: str) -> list[tuple[float, int, float]]:
    """Return the points of a curve; none before TensorBoard has some."""
    try:
        with urlopen(curve, timeout=60) as response:
            points: list[tuple[float, int, float]] = json.load(response)
            return points
    except URLError:
        return []


class Traffic:
    """Requests of a page, and their bytes."""

    def __init__(self, page: Page) -> None:
        self.started: list[PageRequest] = []
        self.ended: list[PageRequest] = []
        page.on("request", lambda request: self.started.append(request))  # noqa: PLW0108 - Playwright marks it
        page.on("requestfinished", lambda request: self.ended.append(request))  # noqa: PLW0108 - as above
        page.on("requestfailed", lambda request: self.started.remove(request))  # noqa: PLW0108 - as above

    async def kilobytes(self, since: int = 0) -> float:
        """Return the bytes of the responses that have ended, as they travel."""
        sizes = [await request.sizes() for request in self.ended[since:]]
        return sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes) / 1000

    async def settled(self) -> None:
        """Wait until all requests for curves have ended."""
        await _until(
            lambda: all(request in self.ended for request in self.started if "/curves?" in request.url),
        )


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - Playwright has no event for a page at rest
        await asyncio.sleep(0.002)


@asynccontextmanager
async def _page() -> AsyncIterator[Page]:
    program = executable()
    if program is None:
        raise RuntimeError(REMEDY)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program)
        context = await browser.new_context(viewport={"width": 1400, "height": 900})
        yield await context.new_page()
        await browser.close()


@asynccontextmanager
async def _program(name: str, *arguments: str) -> AsyncIterator[tuple[str, int]]:
    """Start a server; yield its URL and process."""
    server = _started([str(BINARIES / name), *arguments])
    assert server.stdout is not None
    try:
        url = None
        while url is None:
            line = server.stdout.readline()
            assert line, f"{name} has ended"
            url = re.search(r"http://\S+?:[0-9]+/", line)
        yield url[0], server.pid
    finally:
        server.terminate()
        server.wait()


def _started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _usage(pid: int) -> dict[str, str]:
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return {
        "peak memory of the server (RSS)": f"{sum(map(peak_rss_mib, [pid, *children])):.0f} MiB",
        "CPU time of the server": f"{sum(map(cpu_seconds, [pid, *children])):.0f} s",
    }


def write_events(folder: Path) -> None:
    """Write the values of the run as an event file, as the SDK's sink writes it."""
    folder.mkdir(parents=True)
    names = [metric_name(at) for at in range(METRICS)]
    with (folder / f"events.out.tfevents.{START_S:.0f}.host.1.0").open("wb") as file:
        file.write(frames([version_event(START_S)]))
        for first in range(0, STEPS, 1000):
            steps = range(first, min(STEPS, first + 1000))
            values = {step: [(name, step + at / 1000) for at, name in enumerate(names)] for step in steps}
            file.write(frames([scalar_event(START_S + step / 10, step, values[step]) for step in steps]))


def _size(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 1e6:.0f} MB"
