"""More hosts and profiles than a page lists: it counts those that are left out, and shows the others in parts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view import documents
from playwright.async_api import expect
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")
LISTED, HOSTS = 2001, 2003
SESSIONS, PROFILES = 3, 7


async def test_what_a_page_leaves_out_is_counted_and_the_rest_is_shown(
    serve: Serve, pages: CheckedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_LISTED", LISTED)
    monkeypatch.setattr(documents, "MAX_SHOWN_SESSIONS", SESSIONS)
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "large", worldSize=HOSTS)
    for rank in range(HOSTS):
        common = {"rank": rank, "attempt": 0, "payload": {"intervalSeconds": 10}}
        beats = [Record("heartbeat", 10.0 * at, "alive", step=at, **common) for at in range(3)]
        put_records(store, "large", f"a0-r{rank}-{rank:08x}-00001", *beats)
    for number in range(PROFILES):
        store.put(f"large/plugins/profile/session-{number}/host-0.xplane.pb", b"12345")

    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/large?part=hosts")
    await expect(page.locator(".run-top")).to_contain_text(
        f"Too many to list: {HOSTS - LISTED} hosts, {PROFILES - SESSIONS} sessions are not shown."
    )
    rows = page.locator(".part tbody tr")
    more = page.get_by_role("button", name=re.compile("^Show .* more"))
    await expect(page.get_by_role("img", name=re.compile(f"^{HOSTS} hosts over time"))).to_be_visible()
    for shown, rest in ((1000, "Show 1000 more of 2001 rows"), (2000, "Show 1 more of 2001 rows")):
        await expect(more).to_have_text(rest)
        assert await rows.count() == shown
        await more.click()
    await expect(more).to_be_hidden()
    assert await rows.count() == LISTED
    put_run(store, "large", worldSize=HOSTS, name="renamed")
    await expect(page.get_by_role("heading", name="renamed")).to_be_visible()
    assert await rows.count() == LISTED, "the rows stay when the table is drawn again"
    await expect(rows.last.get_by_role("cell").first).to_have_text(str(LISTED - 1))

    await page.get_by_role("link", name="Profiles").click()
    await expect(rows).to_have_count(SESSIONS)
