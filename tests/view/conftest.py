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
from mldiagnostics_view.sources import cluster, files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


FIRST_LIST_S = 120.0
"""A busy machine may take longer for the first list than a page waits for it."""


@pytest.fixture(autouse=True)
def whole_first_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests wait for first lists; a test may set another time afterwards."""
    monkeypatch.setattr(files, "FIRST_LIST_S", FIRST_LIST_S)
    monkeypatch.setattr(cluster, "FIRST_LIST_S", FIRST_LIST_S)


class Serve(Protocol):
    """Starts a server over directories and returns its URL, which ends with a slash."""

    async def __call__(self, *roots: Path) -> str: ...


@pytest_asyncio.fixture(loop_scope="session")
async def serve() -> AsyncIterator[Serve]:
    """Servers with the bundled page, until the test ends."""
    async with AsyncExitStack() as stack:

        async def start(*roots: Path) -> str:
            settings = Settings(roots=tuple(map(str, roots)), port=0)
            return await stack.enter_async_context(serving(settings))

        yield start
