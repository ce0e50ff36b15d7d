"""Programs that show the curves of a run: their servers, their pages in a browser, and the cost of both."""

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Page, async_playwright
from playwright.async_api import Request as PageRequest
from playwright.async_api import TimeoutError as PageTimeoutError
from support.programs.browser import REMEDY, executable

from bench.process_usage import cpu_seconds, peak_rss_mib

METRICS, STEPS = 200, 100_000
DEADLINE_S = 240.0
Figures = dict[str, str]
FIRST, FIRST_TRANSFER = "page opened to the first curve", "transfer until the first curve"
COMPLETE, COMPLETE_TRANSFER = "page opened until all points are read", "transfer until all points are read"
_OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"


@dataclass(frozen=True)
class Program:
    """A program that shows the curves of a run.

    Attributes:
        title: Column of its figures.
        write: Writes the run in the program's format into an empty folder.
        measure: Serves that folder, opens the run in a browser, and returns figures by their row.
        steps: Points of each metric that `write` writes.
    """

    title: str
    write: Callable[[Path], None]
    measure: Callable[[Path], Coroutine[None, None, Figures]]
    steps: int = STEPS


@dataclass(frozen=True)
class Server:
    """A running server, and the time of its first answer."""

    url: str
    pid: int
    listening: float

    def usage(self) -> Figures:
        """Return the memory and CPU time of the server and its child processes."""
        pids = _family(self.pid)
        return {
            "peak memory of the server (RSS)": f"{sum(map(peak_rss_mib, pids)):.0f} MiB",
            "CPU time of the server": f"{sum(map(cpu_seconds, pids)):.0f} s",
        }


@asynccontextmanager
async def served(program: Path, *arguments: str, **variables: str) -> AsyncIterator[Server]:
    """Start a server that prints its URL; yield it once it accepts connections."""
    process = _started([str(program), *arguments], {**os.environ, **variables, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    try:
        url = None
        while url is None:
            line = process.stdout.readline()
            assert line, f"{program.name} has ended"
            url = re.search(r"http://([^/\s:]+):([0-9]+)", line)
        await _accepts(url[1], int(url[2]))
        yield Server(f"{url[0]}/", process.pid, time.monotonic())
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its workers too: not every server ends them
        process.wait()


def _started(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )


async def _accepts(host: str, port: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            assert time.monotonic() < deadline, f"{host}:{port} does not listen"
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(each for file in children for child in file.read_text().split() for each in _family(int(child)))]


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

    async def last_answer(self, path: str) -> Any:
        """Return the JSON of the last response from an address with `path`; None if there was not one."""
        requests = [request for request in self.ended if path in request.url]
        response = await requests[-1].response() if requests else None
        return await response.json() if response else None

    async def settled(self) -> None:
        """Wait until all requests for curves have ended."""
        await until(lambda: all(request in self.ended for request in self.started if "/curves?" in request.url))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that has no event."""
    while not condition():  # noqa: ASYNC110 - Playwright has no event for a page at rest
        await asyncio.sleep(0.002)


@asynccontextmanager
async def browser_page() -> AsyncIterator[Page]:
    """Yield a page of a browser with an empty cache that reaches this machine only."""
    program = executable()
    if program is None:
        raise RuntimeError(REMEDY)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[_OFFLINE])
        context = await browser.new_context(viewport={"width": 1400, "height": 900})
        yield await context.new_page()
        await browser.close()


async def first_curve(page: Page, traffic: Traffic, url: str, curve: str, *, since: float | None = None) -> Figures:
    """Open a page; return the time until the selector `curve` matches, since opening or `since`, and the transfer."""
    opened = time.monotonic() if since is None else since
    await page.goto(url)
    try:
        await page.locator(curve).first.wait_for(timeout=1000 * DEADLINE_S)
    except PageTimeoutError:
        return {FIRST: f"none in {DEADLINE_S:.0f} s"}
    first_s = time.monotonic() - opened
    return {FIRST: f"{first_s:.2f} s", FIRST_TRANSFER: f"{await traffic.kilobytes():.0f} kB"}
