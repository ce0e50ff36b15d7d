"""Stored values are never markup or links, wherever a page shows them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from playwright.async_api import expect
from support.programs.pages import visit
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page
    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")

ATTACKS = (
    "<img src=x onerror=document.title='ran'>",
    "javascript:document.title='ran'",
    "\"><svg onload=document.title='ran'>",
    "\u202e</script><script>document.title='ran'</script>",
)
START = 1_790_000_000.0
PARTS = ("curves", "system", "goodput", "hosts", "profiles", "configs")


def put_attack(root: Path, key: str, attack: str) -> None:
    """A run in which each text is an attack."""
    store, common = open_store(str(root)), {"attempt": 0}
    for rank in (0, 1):
        host = {"host": attack, "podUid": attack, "node": attack, "reason": attack, "message": attack}
        records = [Record("phase", START, "Active", payload=host, rank=rank, **common)]
        for step in range(20):
            t, labels = START + step, {attack: attack}
            records += [
                Record("metric", t, attack, float(step), step=step, labels=labels, unit=attack, rank=rank, **common),
                Record("metric", t, "system/" + attack, 1.0, labels=labels, unit=attack, rank=rank, **common),
                Record("heartbeat", t, attack, step=step, payload={"intervalSeconds": 10}, rank=rank, **common),
            ]
            event = {"job_name": attack, "step_count": step, "step_start_time": t, "custom_badput_event_type": attack}
            records.append(Record("event", t, "goodput", payload=event, rank=rank, **common))
        put_records(store, key, f"a0-r{rank}-0000000{rank}-00001", *records)
    attempt = {"attempt": 0, "phase": "Failed", "reason": attack, "message": attack, "started": START, "ended": START}
    put_run(
        store,
        key,
        runId=attack,
        name=attack,
        runGroup=attack,
        namespace=attack,
        phase="Failed",
        reason=attack,
        message=attack,
        created=START,
        started=START + 1,
        ended=START + 30,
        attempt=1,
        attempts=[attempt],
        workload={"kind": attack, "name": attack},
        configs={"user": {attack: attack, "nested": {attack: [attack]}}, attack: {attack: attack}},
    )
    session = attack.replace("/", "")
    store.put(f"{key}/plugins/profile/{session}/{session}.xplane.pb", b"12345")
    capture = {"object": {"namespace": attack, "name": attack}, "targets": [{"state": attack, "reason": attack}]}
    store.put(f"{key}/plugins/profile/{session}/capture.json", json.dumps(capture).encode())


async def assert_harmless(page: Page) -> None:
    """Fail if a stored value became an element, an attribute with a script, or a link."""
    assert "ran" not in (await page.title()).split()
    wrong = await page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((each) =>
            ["IMG", "IFRAME", "OBJECT", "EMBED", "BASE", "FORM"].includes(each.tagName)
            || (each.tagName === "SCRIPT" && !each.src.startsWith(location.origin + "/assets/"))
            || [...each.attributes].some(({ name, value }) => /^on/i.test(name)
                || (["href", "src", "action", "xlink:href"].includes(name) && !/^([/?#]|data:,$)/.test(value))))
            .map((each) => each.outerHTML.slice(0, 200))"""
    )
    assert not wrong, wrong


async def test_no_page_runs_or_links_a_stored_value(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    root = tmp_path / "<img src=x onerror=document.title='ran'>"
    for number, attack in enumerate(ATTACKS):
        put_attack(root, f"run-{number}", attack)
    folder = "<img src=x onerror=document.title='ran'>"
    put_run(open_store(str(root)), folder, name="in a folder", created=START + 100)
    open_store(str(root)).put(f"{folder}-broken/run.json", b"{")
    url = await serve(root)
    page = await pages.open(url, width=1600)
    for attack in ATTACKS:
        await expect(page.get_by_role("link", name=attack)).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text(f"{folder}-broken")
    await page.get_by_label("By group").check()
    await assert_harmless(page)
    link = await page.get_by_role("link", name="in a folder").get_attribute("href") or ""
    source = link.split("/")[2]

    for number, attack in enumerate(ATTACKS):
        base = f"{url}runs/{source}/run-{number}"
        await visit(page, base)
        for part in PARTS:
            await visit(page, f"{base}?part={part}")
            await expect(page.get_by_role("heading", name=attack, exact=True).first).to_be_visible()
            if part in {"curves", "system"}:
                await expect(page.locator("figure.curve canvas").first).to_be_visible()
                await visit(page, f"{base}?part={part}&show=list")
                await expect(page.locator(".sparkline polyline")).not_to_have_count(0)
            else:
                await expect(page.locator(".part")).to_contain_text(attack if part != "goodput" else "By cause")
            await assert_harmless(page)
    await visit(page, f"{url}compare?run={source}/run-0&run={source}/run-1&run={source}/{'%3Cimg src=x%3E'}")
    await expect(page.locator("figure canvas").first).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("<img src=x>")
    await assert_harmless(page)
    await visit(page, url)
    await page.get_by_role("link", name="in a folder").click()
    await expect(page.get_by_role("heading", name="in a folder")).to_be_visible()
    assert all("404" in error for error in pages.expect_errors())


async def test_no_parameter_of_an_address_is_markup(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    put_attack(tmp_path / "runs", "run", "plain")
    url = await serve(tmp_path / "runs")
    attack = "%22%3E%3Cimg%20src=x%20onerror=document.title='ran'%3E"
    names = ("q", "phase", "group", "by", "groups", "sort", "order", "columns", "run", "metric", "axis", "from", "to")
    query = "&".join(f"{name}={attack}" for name in (*names, "smooth", "log", "config", "part", "show", "session"))
    for path in ("", "runs/runs/run", "compare", f"runs/runs/{attack}", f"{attack}"):
        page = await pages.open(f"{url}{path}?{query}")
        await expect(page.locator("main")).not_to_have_text(re.compile("Loading|Reading"))
        await assert_harmless(page)
        await pages.check_access(page)
        await page.close()
    assert all("40" in error for error in pages.expect_errors())
