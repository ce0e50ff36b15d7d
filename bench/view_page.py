"""Cost of the web view: its start over many runs, the weight of the page, and the curves of a large run."""

import asyncio
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.async_api import Browser, async_playwright
from playwright.async_api import Request as PageRequest
from support.programs.browser import REMEDY, executable

from bench import view_large_run
from bench.process_usage import cpu_seconds, peak_rss_mib
from bench.table import Section
from bench.view_peers import PEERS

MLDIAG = Path(sys.executable).parent / "mldiag"
REPEATS = 5
RUNS = 1000
PAINTED_MS = "performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime"


@dataclass(frozen=True)
class Start:
    """One start of the view, with a page in a browser that runs already."""

    address_s: float
    cpu_s: float
    """CPU time until the address, which other work does not stretch."""
    painted_s: float
    """Time to the first paint with any text, of the page without its rows."""
    listed_s: float
    rss_mib: float
    transfer_kb: float
    """All responses of the page and its list, as they travel."""


def measure() -> Section:
    """Start the view over many runs several times, and return the medians."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(RUNS):
            file = Path(folder, f"{number:064x}", "run.json")
            file.parent.mkdir()
            document = {"v": 1, "runId": file.parent.name, "name": f"run {number}", "phase": "Completed"}
            file.write_text(json.dumps(document | {"created": float(number + 1), "step": number}))
        starts = asyncio.run(_starts(folder))
        weight_kb = _weight_kb(folder)
    large = view_large_run.rows()
    listed = [
        ("floor: import aiohttp", _spread([_floor_s() for _ in range(REPEATS)], "s"), ""),
        ("CPU time to the address", _spread([each.cpu_s for each in starts], "s"), ""),
        ("start to the address", _spread([each.address_s for each in starts], "s"), ""),
        ("start to the first paint in the browser", _spread([each.painted_s for each in starts], "s"), "≤ 1 s"),
        (f"start to the first rows of {RUNS} runs in it", _spread([each.listed_s for each in starts], "s"), ""),
        ("memory of the server (RSS)", _spread([each.rss_mib for each in starts], "MiB"), "≤ 200 MB"),
        ("transfer: page and list", _spread([each.transfer_kb for each in starts], "kB"), ""),
        ("weight of the page: HTML, script and style", f"{weight_kb:.0f} kB", "≤ 200 kB"),
    ]
    return Section(
        name="view",
        title="The web view",
        columns=("what", "`mldiag view`", *(peer.title for peer in PEERS), "goal"),
        rows=[*((what, value, *("" for _ in PEERS), goal) for what, value, goal in listed), *large],
        notes=(
            f"Median (lowest-highest) of {REPEATS} starts of `mldiag view`, on {os.cpu_count()} cores "
            f"({platform.machine()}, load average {load:.1f} at the start). Runs are in a local directory; the browser "
            "is a Chromium without a window that runs already, with an empty cache and on the same cores. Transfers "
            f"are compressed. {view_large_run.NOTES}"
        ),
    )


async def _starts(folder: str) -> list[Start]:
    program = executable()
    if program is None:
        raise RuntimeError(REMEDY)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program)
        await _start(browser, folder)  # fills the page cache
        starts = []
        for turn in range(REPEATS):
            print(f"... start {turn + 1} of {REPEATS} (a second)", flush=True)
            starts.append(await _start(browser, folder))
        return starts


async def _start(browser: Browser, folder: str) -> Start:
    context = await browser.new_context()
    page = await context.new_page()
    ended: list[PageRequest] = []
    page.on("requestfinished", lambda each: ended.append(each))  # noqa: PLW0108 - Playwright marks it
    started, started_at = time.monotonic(), time.time()
    server, url = _served(folder)
    try:
        address_s, cpu_s = time.monotonic() - started, cpu_seconds(server.pid)
        await page.goto(url)
        await page.get_by_role("link", name=f"run {RUNS - 1}", exact=True).wait_for()
        listed_s = time.monotonic() - started
        painted_s = await page.evaluate(PAINTED_MS) / 1000 - started_at
        sizes = [await request.sizes() for request in ended]
        transfer = sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes)
        return Start(address_s, cpu_s, painted_s, listed_s, peak_rss_mib(server.pid), transfer / 1000)
    finally:
        await context.close()
        server.kill()
        server.wait()


def _served(folder: str) -> tuple[subprocess.Popen[str], str]:
    command = [str(MLDIAG), "view", folder, "--port=0", "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    shown = re.search(r"http://\S+/", server.stdout.readline())
    assert shown is not None, "mldiag view has not started"
    return server, shown[0]


def _weight_kb(folder: str) -> float:
    server, url = _served(folder)
    try:
        page = _read(url, compressed=False).decode()
        names = re.findall(r'(?:src|href)="/(assets/[^"]+)"', page)
        return sum(len(_read(f"{url}{name}", compressed=True)) for name in ["", *names]) / 1000
    finally:
        server.kill()
        server.wait()


def _read(url: str, *, compressed: bool) -> bytes:
    encoding = "gzip" if compressed else "identity"
    with urlopen(Request(url, headers={"Accept-Encoding": encoding}), timeout=60) as response:
        content: bytes = response.read()
        return content


def _floor_s() -> float:
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import aiohttp.web"], check=True)
    return time.monotonic() - started


def _spread(values: Sequence[float], unit: str) -> str:
    digits = 2 if unit == "s" else 0
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f}) {unit}"
