"""Servers of the view, and pages of them in a real browser.

A test of a page runs in the loop of the session, which has the browser:

    pytestmark = pytest.mark.asyncio(loop_scope="session")

    async def test_a_run_is_shown(serve: Serve, pages: CheckedPages) -> None:
        page = await pages.open(await serve(root) + "runs/…")
        await expect(page.get_by_role("heading", name="…")).to_be_visible()

When it ends, every page that it opened is checked: errors, foreign requests, accessibility.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

import pytest
import pytest_asyncio
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from support.programs.browser import REMEDY, executable
from support.programs.pages import CheckedPages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser


class Serve(Protocol):
    """Starts a server over directories and returns its URL, which ends with a slash."""

    async def __call__(self, *roots: Path) -> str: ...


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A Chromium without a window."""
    from playwright.async_api import async_playwright, expect

    program = executable()
    if program is None:
        pytest.skip(REMEDY)
    expect.set_options(timeout=60_000)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--disable-gpu"], timeout=120_000)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def pages(browser: Browser) -> AsyncIterator[CheckedPages]:
    """Pages that are checked when the test ends."""
    pages = CheckedPages(browser)
    yield pages
    await pages.check()


@pytest_asyncio.fixture(loop_scope="session")
async def serve() -> AsyncIterator[Serve]:
    """Servers with the bundled page, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(*roots: Path) -> str:
            settings = Settings(roots=tuple(map(str, roots)), port=0)
            return await stack.enter_async_context(serving(settings))

        yield start
