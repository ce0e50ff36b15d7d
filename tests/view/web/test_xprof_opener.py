"""A session that the page of a deployment opens in the real XProf, in a browser."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_view.endpoints.assets import load_assets
from mldiagnostics_view.server import Address, listening
from mldiagnostics_view.sources.catalog import Catalog
from mldiagnostics_view.sources.files import FileSource
from mldiagnostics_view.xprof.hosted import HostedXprof, XprofHost
from playwright.async_api import expect
from support.programs.captured_session import capture_session, put_session
from support.programs.pages import DEADLINE_S, visit
from support.programs.xprof_server import xprof_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext

pytestmark = [pytest.mark.peers, pytest.mark.asyncio(loop_scope="session")]

PAGE = "/runs/runs/first?part=profiles&session=slow"
ATTACKS = {
    "read the list of runs": "fetch('/api/runs').then((each) => each.text())",
    "start a capture": """fetch('/api/runs/runs/first/captures', {method: 'POST', body: '{}',
        headers: {'Content-Type': 'application/json'}}).then((each) => each.text())""",
    "read another session": "fetch('/xprof/runs/second/slow/data/plugin/profile/runs').then((each) => each.text())",
    "frame the view": """new Promise((done, fail) => {
        const frame = document.createElement('iframe');
        frame.src = '/';
        frame.onload = () => frame.contentDocument?.body?.innerText ? done('framed') : fail(new Error('refused'));
        document.body.append(frame);
      })""",
}


@pytest.fixture(scope="module")
def xprof() -> Iterator[str]:
    with xprof_server() as address:
        yield address


@asynccontextmanager
async def deployment(xprof: str, folder: Path) -> AsyncIterator[str]:
    """Yield the address of a view with two runs that have a session each."""
    put_session(str(folder / "runs"), capture_session(folder), "first", "second")
    hosted = HostedXprof(XprofHost(xprof, folder / "cache", 2**30))
    catalog = Catalog({"runs": FileSource(str(folder / "runs"))})
    async with listening(catalog, Address("127.0.0.1", (0,)), load_assets(), xprof=hosted) as port:
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def browsing(browser: Browser, address: str) -> AsyncIterator[BrowserContext]:
    """Yield a browser without the network but for one address."""
    context = await browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(1000 * DEADLINE_S)
    await context.route(lambda url: not url.startswith((address, "data:", "blob:")), lambda route: route.abort())
    yield context
    await context.close()


async def test_xprof_opens_in_a_tab_whose_address_can_be_shared(browser: Browser, xprof: str, tmp_path: Path) -> None:
    async with deployment(xprof, tmp_path) as address:
        async with browsing(browser, address) as context:
            page = await context.new_page()
            await visit(page, f"{address}{PAGE}")
            async with context.expect_page() as opened:
                await page.get_by_role("button", name="Open in XProf").click()
            await expect(page.locator(".opener")).to_contain_text("everybody who may see the run")
            link = await page.get_by_role("link", name="XProf shows it").get_attribute("href")
            tab = await opened.value
            await expect(tab.locator("body")).to_contain_text("slow")
        async with browsing(browser, address) as colleague:
            page = await colleague.new_page()
            await visit(page, f"{address}{link}")
            await expect(page.locator("body")).to_contain_text("slow")
            await visit(
                page, f"{address}/xprof/runs/first/slow/data/plugin/profile/trace_viewer?run=slow&tag=trace_viewer@"
            )
            await expect(page.frame_locator("iframe").locator("body")).to_contain_text("python")


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_script_in_a_trace_cannot_act_in_the_view(
    attack: str, browser: Browser, xprof: str, tmp_path: Path
) -> None:
    async with deployment(xprof, tmp_path) as address, browsing(browser, address) as context:
        page = await context.new_page()
        await visit(page, f"{address}/xprof/runs/first/slow/")
        await expect(page.locator("body")).to_contain_text("slow")
        own = "fetch('/xprof/runs/first/slow/data/plugin/profile/runs').then((each) => each.json())"
        assert await page.evaluate(own) == ["slow"]
        outcome = f"Promise.resolve({ATTACKS[attack]}).then((text) => text, (error) => 'refused: ' + error)"
        assert (await page.evaluate(outcome)).startswith("refused")


async def test_a_script_in_a_trace_cannot_reach_a_page_that_it_opens(
    browser: Browser, xprof: str, tmp_path: Path
) -> None:
    async with deployment(xprof, tmp_path) as address, browsing(browser, address) as context:
        page = await context.new_page()
        await visit(page, f"{address}/xprof/runs/first/slow/")
        await expect(page.locator("body")).to_contain_text("slow")
        async with context.expect_page() as opened:
            await page.evaluate("window.other = window.open('/'), null")
        view = await opened.value
        await expect(view.locator("body")).to_contain_text("first")
        read = "(() => { try { return window.other.document.body.innerText } catch (error) { return 'refused' } })()"
        assert await page.evaluate(read) == "refused"
