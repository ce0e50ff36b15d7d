"""The page of a trace, in a real browser; a page of the test stands for Perfetto and speaks its protocol."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.trace.page import VIEWER, page

if TYPE_CHECKING:
    from playwright.async_api import Route
    from support.programs.command_line import CommandLine
    from support.programs.pages import CheckedPages

TITLE = "</title><script>alert(1)</script>"
PERFETTO = """<!doctype html><html lang="en"><title>viewer</title><main><h1>viewer</h1><p id="got"></p></main><script>
addEventListener("message", async ({ data, source, origin }) => {
  if (data === "PING") { source.postMessage("PONG", origin === "null" ? "*" : origin); return; }
  const { buffer, title } = data.perfetto;
  const trace = await new Response(new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  document.getElementById("got").textContent = `${title}: ${trace.traceEvents.map(({ name }) => name).join(" ")}`;
});
</script></html>"""


@given(st.lists(st.binary(max_size=9)))
def test_the_trace_is_in_the_page_whatever_its_pieces(pieces: list[bytes]) -> None:
    text = b"".join(page(TITLE, pieces)).decode()
    assert TITLE not in text
    encoded = text.partition('id="trace">')[2].partition("</script>")[0]
    assert b64decode(encoded, validate=True) == b"".join(pieces)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_page_opens_the_trace_in_perfetto_and_saves_it(mldiag: CommandLine, pages: CheckedPages) -> None:
    from playwright.async_api import expect

    (mldiag.folder / "a.log").write_text("2026-11-21T10:00:00Z INFO started\n2026-11-21T10:00:01Z ERROR failed\n")
    shown = mldiag.run("trace", "a.log", "--out", "incident.html")
    assert shown.code == 0, shown.err
    assert "Open the file in a browser; it is not uploaded." in shown.err

    async def answer(route: Route) -> None:
        await route.fulfill(body=PERFETTO, content_type="text/html")

    opened = await pages.open((mldiag.folder / "incident.html").as_uri())
    await opened.context.route(f"{VIEWER}/**", answer)
    async with opened.expect_popup() as popup:
        await opened.get_by_role("button", name="Open in Perfetto").click()
    viewer = await popup.value
    await expect(viewer.locator("#got")).to_contain_text("INFO started ERROR failed")
    await expect(viewer.locator("#got")).to_contain_text("incident: ")
    await expect(opened.get_by_role("status")).to_have_text(
        "The trace is in the window of Perfetto. It is not uploaded."
    )
    async with opened.expect_download() as download:
        await opened.get_by_role("button", name="Save the trace").click()
    saved = await download.value
    assert saved.suggested_filename == "incident.json.gz"
    events = json.loads(gzip.decompress((await saved.path()).read_bytes()))["traceEvents"]
    assert [each["name"] for each in events if each["ph"] == "i"] == ["INFO started", "ERROR failed"]
