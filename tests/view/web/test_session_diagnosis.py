"""Findings of a session in a browser: words, the phases of its hosts, and their arrivals."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.diagnosed_sessions import put_diagnosed_session
from support.programs.pages import visit
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Route
    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "rank 2 arrives last: <img src=x onerror=alert(1)>"


async def test_a_session_names_its_slow_host_in_words_and_in_one_picture(
    serve: Serve, pages: CheckedPages, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first")
    put_diagnosed_session(store, "first", "slow", hosts=4, slow=2, message=HOSTILE)
    store.put("first/plugins/profile/other/host-0.xplane.pb", b"x")
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/first")
    await expect(page.locator(".run-top .findings")).to_contain_text(HOSTILE)
    await page.get_by_role("link", name="session slow").click()
    session = page.locator(".diagnosis")
    await expect(session.locator(".findings")).to_contain_text("→ Look at the input of this host.")
    await expect(session.locator(".findings")).to_contain_text(
        "SlowHost · costs 20 ms of each step (50.0 %) · phase input · trainer-2 (rank 2, node n7)"
    )
    bars = session.locator(".phase-bars li")
    assert await bars.count() == 4
    marked = session.locator(".phase-bars .slow-host")
    await expect(marked).to_have_text(re.compile(r"^▲ trainer-2 \(rank 2, node n7\)"))
    bar = marked.get_by_role("img")
    assert "input 20 ms, device compute 10 ms, waiting" in (await bar.get_attribute("aria-label") or "")
    await expect(
        session.get_by_role("img", name="4 hosts over steps, from 0.01 s to 0.03 s; the button Numbers has a table")
    ).to_be_visible()
    await pages.check_access(page)

    await page.get_by_role("button", name="other").click()
    await expect(session).to_contain_text(f"mldiag diagnose {shlex.quote(f'{tmp_path}/runs/first/other')}")


async def test_a_session_that_may_be_diagnosed_is_looked_up(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first")
    put_diagnosed_session(store, "first", "slow", hosts=1, slow=0, message="host-0 is late")

    async def forget(route: Route) -> None:
        """Return the run as from an MLRun, which has the findings of another session."""
        response = await route.fetch()
        document = await response.json()
        for session in document["sessions"]:
            session["diagnosed"] = None
        await route.fulfill(response=response, json=document)

    url = await serve(tmp_path / "runs")
    page = await pages.open(url)
    await page.route(re.compile("/api/.*/first$"), forget)
    await visit(page, url + "runs/runs/first?part=profiles&session=slow")
    await expect(page.locator(".diagnosis .findings")).to_contain_text("host-0 is late")


async def test_a_thousand_hosts_stay_readable(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "large")
    put_diagnosed_session(store, "large", "slow", hosts=1000, slow=731)
    page = await pages.open(
        await serve(tmp_path / "runs") + "runs/runs/large?part=profiles&session=slow", scheme="dark"
    )
    bars = page.locator(".phase-bars li")
    await expect(bars).to_have_count(24)
    await expect(bars.first).to_contain_text("▲ trainer-731 (rank 731, node n7)")
    await expect(bars.last).to_contain_text("mean of 977 other hosts")
    await expect(page.get_by_role("img", name=re.compile("^1000 hosts over steps"))).to_be_visible()


async def test_a_diagnosis_that_is_not_one_says_so(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first")
    put_diagnosed_session(store, "first", "slow", hosts=1, slow=0)
    store.put("first/plugins/profile/slow/diagnosis.json", b"{}", replace=True)
    page = await pages.open(await serve(tmp_path / "runs") + "runs/runs/first?part=profiles&session=slow")
    await expect(page.locator(".diagnosis").get_by_role("alert")).to_contain_text("diagnosis.json: not a diagnosis of")
    await expect(page.locator(".diagnosis .command")).to_contain_text("mldiag diagnose ")
    pages.expect_errors()  # the console has the response
