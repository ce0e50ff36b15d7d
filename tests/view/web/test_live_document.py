"""Requests of pages: each opens with one request for each of its documents, and reads again only a changed one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view.curves.open_runs import OpenRuns
from playwright.async_api import expect
from support.programs.pages import NETWORK_CHANGED, visit
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page, Request, Response
    from support.programs.pages import CheckedPages

    from conftest import Serve

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def whole_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers wait for all records: after one with less, the page reads again."""
    monkeypatch.setattr(OpenRuns.get, "__kwdefaults__", {"wait_s": 60.0})


def put_curves(root: Path, run: str, steps: range, number: int = 1) -> None:
    for rank in (0, 1):
        lines = []
        for t in steps:
            common = {"step": t, "rank": rank, "attempt": 0}
            lines.append(Record("metric", float(t), "loss", 1.0, **common))
            lines.append(Record("heartbeat", float(t), "alive", payload={"intervalSeconds": 10}, **common))
        put_records(open_store(str(root)), run, f"a0-r{rank}-0000000{rank}-{number:05}", *lines)


async def opened(page: Page, url: str, live: str, event: str) -> Counter[str]:
    """Open a URL, until its stream has sent its first events and pauses between requests are over.

    Returns:
        The numbers of the requests by their path, which grow.
    """
    requests: Counter[str] = Counter()
    await page.goto("about:blank")  # ends the requests of the page before
    page.on("request", lambda request: requests.update([urlsplit(request.url).path]))
    page.on("requestfailed", lambda request: requests.subtract(repeated(request)))
    await page.clock.install()
    await visit(page, url)
    await expect(page.locator("#connection")).to_have_text("live")
    await page.evaluate(
        """([path, event]) => new Promise((done) => {
            const stream = new EventSource(path);
            stream.addEventListener(event, () => { stream.close(); done(); });
        })""",
        [live, event],
    )
    await page.clock.fast_forward(30_000)
    return requests


async def unfinished(responses: list[Response], path: str) -> int:
    """Return how many responses say that the server had not read all records: the page asks for them again."""
    of_path = [response for response in responses if urlsplit(response.url).path == path]
    return sum([not (await response.json())["progress"]["complete"] for response in of_path])


def repeated(request: Request) -> list[str]:
    """Return the path of a request that the page sends again, as another network ended it."""
    return [urlsplit(request.url).path] if request.failure == NETWORK_CHANGED else []


@pytest.mark.parametrize("part", ["curves", "hosts", "goodput"])
async def test_the_page_of_a_run(serve: Serve, pages: CheckedPages, tmp_path: Path, part: str) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first", phase="Completed")
    put_curves(tmp_path / "runs", "first", range(50))
    url = await serve(tmp_path / "runs")
    page = await pages.open(url)
    base = "/api/runs/runs/first"
    requests = await opened(page, f"{url}runs/runs/first?part={part}", f"{base}/live", "curves")
    shown = {"curves": "figure.curve canvas", "hosts": "canvas.heat", "goodput": ".part section"}
    await expect(page.locator(shown[part])).to_be_visible()

    put_run(store, "first", phase="Completed", name="renamed")
    await expect(page.get_by_role("heading", name="renamed")).to_be_visible()
    read = {"curves": {"metrics": 1, "curves": 1}, "hosts": {"metrics": 1, "ranks": 1}, "goodput": {"goodput": 2}}[part]
    assert requests.items() >= {base: 2, **{f"{base}/{name}": count for name, count in read.items()}}.items(), requests
    if part == "goodput":
        return
    put_curves(tmp_path / "runs", "first", range(50, 60), number=2)
    async with page.expect_response(lambda response: response.url.endswith("/metrics")):
        pass
    if part == "curves":
        await page.get_by_role("button", name="List").click()
        await expect(page.get_by_role("row", name="loss")).to_contain_text("120")
    assert requests[f"{base}/metrics"] == 2


async def test_the_list_of_runs(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "first")
    url = await serve(tmp_path / "runs")
    page = await pages.open(url)
    requests = await opened(page, url, "/api/live", "runs")
    put_run(store, "second")
    await expect(page.get_by_role("link", name="name of second")).to_be_visible()
    assert requests["/api/runs"] == 2, requests


async def test_the_comparison(serve: Serve, pages: CheckedPages, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    for run in ("first", "second"):
        put_run(store, run)
        put_curves(tmp_path / "runs", run, range(50))
    url = await serve(tmp_path / "runs")
    page = await pages.open(url)
    responses: list[Response] = []
    page.on("response", lambda each: responses.append(each))  # noqa: PLW0108 - Playwright marks its handlers
    requests = await opened(page, f"{url}compare?run=runs/first&run=runs/second", "/api/live", "runs")
    await expect(page.locator("figure canvas")).to_be_visible()
    put_run(store, "first", name="renamed")
    await expect(page.get_by_text("renamed").first).to_be_visible()
    assert requests["/api/runs"] == 2, requests
    for run, count in (("first", 2), ("second", 1)):
        base = f"/api/runs/runs/{run}"
        assert (requests[base], requests[f"{base}/goodput"]) == (count, count), requests
        read_on = await unfinished(responses, f"{base}/metrics")
        for part in ("metrics", "steptimes"):
            assert count <= requests[f"{base}/{part}"] <= count + read_on, requests
