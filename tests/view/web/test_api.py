"""Requests of the page that a change of the network ends: the page sends them again, but not for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.cluster.operating import address
from support.programs.pages import NETWORK_CHANGED, visit
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Route
    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONNECTIONS = 6  # of Chromium to one server: another request waits for the end of one of them
HOLD_CONNECTIONS = """
(count) => Promise.all([...Array(count)].map(() => new Promise((done) => {
  const stream = new EventSource("/api/live");
  stream.addEventListener("open", done, { once: true });
  (window.held ??= []).push(stream);
})))
"""

WATCH_ALERTS = """
window.hasAlerted = false;
new MutationObserver(() => { window.hasAlerted ||= Boolean(document.querySelector("[role=alert]")); })
  .observe(document.body, { childList: true, subtree: true });
"""


def put_runs(root: Path) -> None:
    store = open_store(str(root))
    for run in ("first", "second"):
        put_run(store, run, phase="Completed")
        lines = [Record("metric", float(t), "loss", float(t), step=t, rank=0, attempt=0) for t in range(9)]
        put_records(store, run, "a0-r0-00000000-00001", *lines)


@pytest.mark.root
async def test_a_request_is_sent_again_after_a_change_of_the_network(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    put_run(open_store(str(tmp_path)), "first")
    page = await pages.open(await serve(tmp_path))
    await expect(page.locator("#connection")).to_have_text("live")
    ended = asyncio.Event()
    page.on("requestfailed", lambda request: ended.set() if request.failure == NETWORK_CHANGED else None)
    await page.evaluate(WATCH_ALERTS)
    await page.evaluate(HOLD_CONNECTIONS, CONNECTIONS - 1)
    async with page.expect_request("**/api/runs"):
        put_run(open_store(str(tmp_path)), "second")
    async with asyncio.timeout(60):
        while not ended.is_set():
            with address():  # Chromium sees the address come and go
                await asyncio.wait([asyncio.ensure_future(ended.wait())], timeout=2)
    await page.evaluate("for (const stream of window.held) stream.close()")
    await expect(page.get_by_role("link", name="name of second")).to_be_visible()
    assert not await page.evaluate("window.hasAlerted")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", "tbody th a"),
        ("runs/runs/first", "figure.curve canvas"),
        ("runs/runs/first?show=list", ".sparkline polyline"),
        ("runs/runs/first?part=goodput", ".part section"),
        ("compare?run=runs/first&run=runs/second", "figure canvas"),
    ],
)
async def test_each_request_may_lose_its_connection(
    serve: Serve, pages: CheckedPages, tmp_path: Path, path: str, shown: str
) -> None:
    put_runs(tmp_path / "runs")
    url = await serve(tmp_path / "runs")
    page = await pages.open(url)
    seen: set[str] = set()

    async def lose_first(route: Route) -> None:
        if (requested := route.request.url) in seen:
            await route.fallback()
        else:
            seen.add(requested)
            await route.abort("connectionreset")

    await page.route("**/api/**", lose_first)
    await visit(page, url + path)
    await expect(page.locator(shown).first).to_be_visible()
    await expect(page.locator("#connection")).to_have_text("live")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.close()
    assert all("ERR_CONNECTION_RESET" in error for error in pages.expect_errors())


async def test_a_server_that_stays_away_is_said(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    page = await pages.open(await serve(tmp_path))
    await page.route("**/api/runs", lambda route: route.abort("connectionreset"))
    await visit(page, page.url)
    await expect(page.get_by_role("alert")).to_contain_text("The server does not respond. Start it again")
    await page.close()
    assert all("ERR_CONNECTION_RESET" in error for error in pages.expect_errors())


@pytest.mark.parametrize(
    ("path", "runs"), [("runs/runs/first", 1), ("compare?run=runs/first&run=runs/second", 2)], ids=["run", "compare"]
)
async def test_curves_come_however_long_their_requests_are_lost(
    serve: Serve, pages: CheckedPages, tmp_path: Path, path: str, runs: int
) -> None:
    put_runs(tmp_path / "runs")
    page = await pages.open(url := await serve(tmp_path / "runs"))
    await page.route("**/curves?**", lambda route: route.abort("connectionreset"), times=6 * runs)
    await visit(page, url + path)
    await expect(page.locator("figure canvas").first).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.close()
    assert all("ERR_CONNECTION_RESET" in error for error in pages.expect_errors())
