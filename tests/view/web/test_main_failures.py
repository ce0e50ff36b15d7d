"""States of the page that are not a list of runs: old browsers, scripts that fail, servers that end, bounds."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view.curves import queries
from mldiagnostics_view.endpoints import live
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from playwright.async_api import expect
from support.programs.pages import visit
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Browser, Page
    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANY = 300


def put_curve(root: Path, run: str, steps: int, number: int = 1) -> None:
    lines = [Record("metric", float(t), "loss", 1.0, step=t, rank=0, attempt=0) for t in range(steps)]
    put_records(open_store(str(root)), run, f"a0-r0-00000000-{number:05}", *lines)


async def visible_text(browser: Browser, url: str, *, script: str = "", javascript: bool = True) -> str:
    """Return the text of a page in a browser that is changed by a script."""
    context = await browser.new_context(java_script_enabled=javascript)
    try:
        page = await context.new_page()
        if script:
            await page.add_init_script(script)
        await visit(page, url)
        if javascript:
            await expect(page.get_by_role("alert").first).to_be_visible()
        return await page.inner_text("body")
    finally:
        await context.close()


async def test_a_browser_without_javascript_or_too_old_gets_a_sentence(
    serve: Serve, browser: Browser, tmp_path: Path
) -> None:
    put_run(open_store(str(tmp_path)), "run")
    url = await serve(tmp_path)
    for path in ("", f"runs/{tmp_path.name}/run", "compare"):
        assert "This page needs JavaScript" in await visible_text(browser, url + path, javascript=False)
        old = await visible_text(browser, url + path, script="delete Object.hasOwn")
        assert "This browser is too old for this page. Use Chrome" in old
    failed = await visible_text(browser, url, script="delete window.IntersectionObserver; delete Map.prototype.get")
    assert "The page has failed:" in failed


async def test_a_part_that_does_not_load_is_said(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    url = await serve(tmp_path)
    page = await pages.open(url)
    await page.route(re.compile(r"/assets/main-"), lambda route: route.fulfill(status=404, body="gone"))
    await visit(page, page.url)
    await expect(page.get_by_role("alert")).to_contain_text("A part of the page cannot be loaded. Reload it")
    pages.expect_errors()


async def test_a_part_whose_request_ends_is_loaded_again(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    put_run(open_store(str(tmp_path)), "run")
    page = await pages.open(await serve(tmp_path))
    for part in ("main", "style"):
        await page.route(re.compile(rf"/assets/{part}-"), lambda route: route.abort("connectionreset"), times=1)
    await visit(page, page.url)
    await expect(page.get_by_role("link", name="name of run")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    assert all("ERR_CONNECTION_RESET" in error for error in pages.expect_errors())


async def test_an_answer_of_another_program_is_said(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    page = await pages.open(await serve(tmp_path))
    await page.route("**/api/runs", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
    await visit(page, page.url)
    await expect(page.get_by_role("alert")).to_contain_text("another program answers at this address (HTTP 502)")
    await pages.close(page)
    pages.expect_errors()


async def test_a_page_reconnects_to_a_server_that_starts_again(pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first", phase="Completed")
    put_curve(tmp_path / "runs", "first", 10)
    opened: list[Page] = []
    async with serving(Settings(roots=(str(tmp_path / "runs"),), port=0)) as url:
        for path in ("", "runs/runs/first?show=list"):
            opened.append(await pages.open(url + path))
            await expect(opened[-1].locator("#connection")).to_have_text("live")
        await expect(opened[1].get_by_role("row", name="loss")).to_contain_text("10")
    for page in opened:
        await expect(page.locator("#connection")).to_have_text("connection lost, reconnecting …")
    await expect(opened[1].get_by_role("row", name="loss")).to_be_visible()
    put_run(store, "second", created=2.0)
    put_curve(tmp_path / "runs", "first", 15, number=2)
    port = int(url.rstrip("/").rpartition(":")[2])
    async with serving(Settings(roots=(str(tmp_path / "runs"),), port=port)):
        for page in opened:
            await expect(page.locator("#connection")).to_have_text("live")
        await expect(opened[0].get_by_role("link", name="name of second")).to_be_visible()
        await expect(opened[1].get_by_role("row", name="loss")).to_contain_text("25")
        await expect(opened[0].get_by_role("alert")).to_have_count(0)
        for page in opened:
            await page.close()
        pages.expect_errors()


async def test_a_page_beyond_the_bound_of_streams_works_and_says_so(
    pages: CheckedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 1)
    monkeypatch.setattr(live, "REFRESH_S", 0.2)
    put_run(open_store(str(tmp_path)), "run")
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(Settings(roots=(str(tmp_path),), port=0)))
        first = await pages.open(url)
        await expect(first.locator("#connection")).to_have_text("live")
        second = await pages.open(url)
        await expect(second.locator("#connection")).to_have_text(re.compile("^not live: More than 1 pages are open"))
        await expect(second.get_by_role("link", name="name of run")).to_be_visible()
        await first.close()
        await expect(second.locator("#connection")).to_have_text("live")
        await second.close()
        pages.expect_errors()


async def test_very_many_metrics_are_found_by_search(
    serve: Serve, pages: CheckedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_LISTED_METRICS", MANY // 2)
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "many")
    names = [f"norm/{at:03}" for at in range(MANY)]
    lines = [Record("metric", float(t), name, 1.0, step=t, rank=0, attempt=0) for name in names for t in range(3)]
    put_records(store, "many", "a0-r0-00000000-00001", *lines)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/many")
    note = page.get_by_role("status").filter(has_text="metrics")
    await expect(note).to_contain_text("150 metrics · 150 metrics more, not listed: search for them")
    await expect(page.locator("figure.curve")).to_have_count(100)
    await expect(page.get_by_role("button", name="Show 50 more of 50")).to_be_visible()
    await page.get_by_label("Search metrics").fill(names[-1])
    await expect(page.locator("figure.curve")).to_have_count(1)
    await expect(page.locator("figure.curve canvas")).to_be_visible()
    await expect(page.locator("figure.curve")).to_contain_text(names[-1])
    await page.get_by_label("Search metrics").fill("nothing like this")
    await expect(note).to_have_text("0 metrics")
    await page.get_by_label("Search metrics").fill("")
    await expect(page.locator("figure.curve")).to_have_count(100)
    linked = await pages.open(f"{page.url.split('?')[0]}?metric={names[-2].replace('/', '%2F')}")
    await expect(linked.locator("figure.curve")).to_have_count(1)
    await expect(linked.locator("figure.curve canvas")).to_be_visible()


async def test_broken_runs_and_refusing_places_stand_beside_the_others(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "good")
    put_records(store, "good", "a0-r0-00000000-00001", torn=b'{"v":1,"kind":"metric","na\n')
    put_curve(tmp_path / "runs", "good", 10, number=2)
    store.put("broken/run.json", b'{"v": 1, "ru')
    url = await serve(tmp_path / "runs", tmp_path / "missing")
    page = await pages.open(url, width=400)
    await expect(page.get_by_role("alert")).to_have_count(2)
    await expect(page.get_by_role("alert").first).to_contain_text("1 with a broken run.json left out: broken")
    await expect(page.get_by_role("alert").last).to_contain_text("no such directory")
    await page.get_by_role("link", name="name of good").click()
    await expect(page.get_by_role("status").filter(has_text="1 metric")).to_contain_text("1 line cannot be read")
    await expect(page.locator("figure.curve canvas")).to_be_visible()
    broken = await pages.open(f"{url}runs/runs/broken")
    await expect(broken.get_by_role("alert")).to_contain_text("its run.json cannot be read; repair or delete the file")
    await pages.check_access(broken)
    await broken.close()
    pages.expect_errors()
