"""The page in a browser: from the list of runs to one run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics import machinelearning_run, metrics
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")
MARKUP = "<img src=x onerror=alert(1)>"


async def test_a_run_is_found_and_opened(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    with machinelearning_run("resnet", configs={"lr": 0.1}, storage=str(tmp_path), run_workload_id="trained") as run:
        for step in range(50):
            run.step(step)
            metrics.record("loss", 50.0 - step, step=step)
    put_run(open_store(str(tmp_path)), "other", name=MARKUP, created=1.0)
    page = await pages.open(await serve(tmp_path))
    await expect(page.get_by_role("link", name=MARKUP)).to_be_visible()
    await pages.check_access(page)
    await page.get_by_role("link", name="resnet").click()
    await expect(page.get_by_role("heading", name="resnet")).to_be_visible()
    dark = await pages.open(page.url, scheme="dark", width=400)
    await expect(dark.get_by_role("heading", name="resnet")).to_be_visible()
