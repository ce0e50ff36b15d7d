"""States of the page while a bucket accepts requests and does not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from mldiagnostics_view.sources import files
from playwright.async_api import expect
from support.run_files import put_run
from support.servers.emulator import running_emulator
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.programs.pages import CheckedPages
    from support.servers.emulator_faults import FaultyProxy

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """The bucket gs://bucket with a run."""
    with running_emulator() as emulator, faulty_proxy(emulator) as proxy:
        monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        emulator.make_bucket("bucket")
        put_run(open_store("gs://bucket/far"), "remote")
        yield proxy


async def test_a_bucket_that_hangs_has_a_state_and_its_runs_appear_later(
    pages: CheckedPages, bucket: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FIRST_LIST_S", 1.0)
    put_run(open_store(str(tmp_path / "near")), "local")
    bucket.otherwise = "hang"
    async with serving(Settings(roots=("gs://bucket/far", str(tmp_path / "near")), port=0)) as url:
        run = await pages.open(f"{url}runs/far/remote")
        await expect(run.locator(".state")).to_have_text("Reading the run …")
        await pages.check_access(run)
        page = await pages.open(url)
        await expect(page.get_by_role("link", name="name of local")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_text(
            "gs://bucket/far: has not responded yet; its runs appear once it does"
        )
        await page.get_by_role("link", name="name of local").click()
        await expect(page.get_by_role("heading", name="name of local")).to_be_visible()
        await page.go_back()
        bucket.otherwise = "pass"  # requests that hang end after their limit of 20 s
        await expect(page.get_by_role("link", name="name of remote")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await expect(run.get_by_role("heading", name="name of remote")).to_be_visible()
        await pages.check()
