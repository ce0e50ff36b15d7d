"""Paths that lead out of a source: none is followed, and each has a clear answer."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from mldiagnostics.store import open_store
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.limits import MAX_QUERY_BYTES
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

ODD = "é <img src=x onerror=alert(1)> ? #"
SECRET = "outside of the source"
PAGE = b"<!doctype html>the page"
ASSETS = {"index.html": Body(PAGE, "text/html")}
KEYS = (
    *("..", ".", "../secret", "%2e%2e", "%2e%2e%2fsecret", "..%2fsecret", "runs%2f..%2f..%2fsecret", "..%252fsecret"),
    *("%00", "secret%00", "%00secret", "..\\secret", "..%5csecret", "%5c%5chost%5cshare", "C:%5cWindows"),
    *("%2fetc%2fpasswd", "/etc/passwd", "//etc/passwd", "file:%2f%2f%2fetc%2fpasswd", "gs:%2f%2fbucket"),
    *("~", "%ff%fe", "%c0%ae%c0%ae%c0%afsecret", "%uff0e", "x" * 300, "run%0d%0aX-Evil:1", "%E2%80%AE", "*", "%25"),
)


async def answer(port: int, target: str) -> tuple[int, bytes, bytes]:
    """Return status, head and body of a request whose target is sent as it is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(60):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), head, body


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source beside a run that is not in it."""
    put_run(open_store(str(tmp_path)), "secret", name=SECRET)
    put_run(open_store(str(tmp_path / "runs")), "run")
    put_run(open_store(str(tmp_path / "runs")), ODD, runId="odd")
    (tmp_path / "runs" / "b\r\nX-Evil: 1").mkdir()
    shutil.copy(tmp_path / "runs/run/run.json", tmp_path / "runs" / "b\r\nX-Evil: 1")
    return tmp_path / "runs"


async def test_no_path_leads_out_of_a_source(root: Path) -> None:
    async with serving(Settings(roots=(str(root),), port=0), ASSETS) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        assert (await answer(port, "/api/runs/runs/run"))[0] == 200
        for key in KEYS:
            for target in (
                f"/api/runs/runs/{key}",
                f"/api/runs/{key}/run",
                f"/api/runs/runs/{key}/curves?metric=loss",
                f"/api/goodput?run=runs/{key}",
                f"/api/values?run=runs/{key}",
                f"/assets/{key}",
                f"/{key}",
                f"/runs/runs/{key}",
            ):
                status, head, body = await answer(port, target)
                assert status < 500, target
                assert SECRET.encode() not in body, target
                assert b"root:" not in body, target
                assert b"X-Evil" not in head, target
                if status == 200:
                    assert body == PAGE or json.loads(body) == {"runs": {}}, target
                elif status not in (400, 404) or body[:1] == b"{":
                    assert json.loads(body)["detail"], target


async def test_other_forms_of_requests_are_rejected(root: Path) -> None:
    async with serving(Settings(roots=(str(root),), port=0), ASSETS) as url:
        port = int(url.rstrip("/").rpartition(":")[2])
        for target, status in (
            ("http://other.example/api/runs", 200),  # the path alone counts
            ("file:///etc/passwd", 400),
            (f"/api/runs?{'x' * MAX_QUERY_BYTES}", 414),
            (f"/api/runs?{'x' * 4 * MAX_QUERY_BYTES}", 400),
            ("/api/runs/runs/run/metrics?q=a&q=b", 400),
        ):
            assert (await answer(port, target))[0] == status, target
        status, head, _ = await answer(port, "/odd")
        assert status == 302
        location = f"/runs/runs/{quote(ODD)}"
        assert f"Location: {location}\r\n".encode() in head
        listed = json.loads((await answer(port, "/api/runs"))[2])
        assert {run["key"] for run in listed["runs"]} == {"run", ODD}
        assert "1 with a broken run.json" in listed["sources"][0]["problem"]
        assert (await answer(port, f"/api{location}"))[0] == 200, "a listed run can be opened"
