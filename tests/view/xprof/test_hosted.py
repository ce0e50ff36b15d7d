"""Sessions in the real XProf behind the server of a deployment."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web
from mldiagnostics_kube.serving.connections import listen
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.limits import MAX_XPROF_REQUESTS
from mldiagnostics_view.server import Address, listening
from mldiagnostics_view.sources.catalog import Catalog
from mldiagnostics_view.sources.files import FileSource
from mldiagnostics_view.xprof.hosted import HostedXprof, XprofHost
from support.programs.captured_session import capture_session, put_session
from support.programs.xprof_server import xprof_server
from support.servers.buckets import BUCKETS
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}
NAMES = ("view.example.com",)
SESSION = "/xprof/runs/first/slow/"
DATA = f"{SESSION}data/plugin/profile/"
LIMIT_S = 120

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def xprof() -> Iterator[str]:
    with xprof_server() as address:
        yield address


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that a real program recorded."""
    return capture_session(tmp_path_factory.mktemp("captured"))


@pytest.fixture(params=["a directory", "gs", "s3", "az"])
def root(request: pytest.FixtureRequest, tmp_path: Path, traces: Path) -> str:
    bucket = BUCKETS.get(request.param)
    root = f"{request.param}://{request.getfixturevalue(bucket)}/runs" if bucket else str(tmp_path / "runs")
    put_session(root, traces, "first")
    return root


class Viewer:
    """Follows links as a browser does."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def get(self, path: str) -> tuple[int, str, dict[str, str]]:
        """Return status, body and headers, once the session is copied."""
        while True:
            async with self._client.get(URL(path, encoded=True), allow_redirects=False) as response:
                if not {"Refresh", "Retry-After"} & response.headers.keys():
                    return response.status, await response.text(), dict(response.headers)

    async def document(self, path: str) -> Any:
        status, body, _ = await self.get(path)
        assert status == 200, body
        return json.loads(body)


@asynccontextmanager
async def viewing(root: str, xprof: str, cache: Path, *, cache_bytes: int = 2**30) -> AsyncIterator[Viewer]:
    hosted = HostedXprof(XprofHost(xprof, cache, cache_bytes))
    catalog = Catalog({"runs": FileSource(root)})
    async with (
        listening(catalog, Address("127.0.0.1", (0,), NAMES), ASSETS, xprof=hosted) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers={"Sec-Fetch-Site": "same-origin"}) as client,
    ):
        yield Viewer(client)


async def test_a_link_of_a_session_leads_to_its_trace_in_xprof(root: str, xprof: str, tmp_path: Path) -> None:
    async with viewing(root, xprof, tmp_path / "cache") as viewer:
        status, _, headers = await viewer.get(SESSION)
        assert (status, headers["Location"]) == (302, f"{DATA}overview_page?run=slow&tag=overview_page")
        status, page, headers = await viewer.get(headers["Location"])
        assert (status, "<title>XProf</title>" in page) == (200, True)
        assert await viewer.document(f"{DATA}runs") == ["slow"]
        assert "trace_viewer@" in await viewer.document(f"{DATA}run_tools?run=slow")
        [host] = await viewer.document(f"{DATA}hosts?run=slow&tag=trace_viewer")
        trace = await viewer.document(f"{DATA}data?run=slow&tag=trace_viewer&host={host['hostname']}")
        assert {event.get("name") for event in trace["traceEvents"]} > {"process_name", "thread_name"}
        assert (await viewer.get(f"{DATA}bundle.js"))[2]["Content-Type"].startswith("application/javascript")


async def test_the_page_gives_the_link_once_the_session_is_copied(xprof: str, traces: Path, tmp_path: Path) -> None:
    put_session(str(tmp_path / "runs"), traces, "first")
    async with viewing(str(tmp_path / "runs"), xprof, tmp_path / "cache") as viewer:
        run = await viewer.document("/api/runs/runs/first")
        assert run["canOpenXprof"] is True
        url = None
        while url is None:
            async with viewer._client.post("/api/runs/runs/first/sessions/slow/xprof", json={}) as response:
                url = (await response.json())["url"]
        assert url == f"{DATA}overview_page?run=slow&tag=overview_page"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/xprof/runs/absent/slow/data/plugin/profile/runs", 404),
        ("/xprof/nowhere/first/slow/data/plugin/profile/runs", 404),
        ("/xprof/runs/first/absent/data/plugin/profile/runs", 404),
        ("/xprof/runs/first/..%2Fslow/data/plugin/profile/runs", 404),
        (f"{DATA}hosts?run=other&tag=trace_viewer", 404),
        (f"{DATA}data?run=slow&tag=memory_viewer&module_name=../../x", 404),
        (f"{DATA}absent.js", 404),
    ],
)
async def test_a_link_shows_one_session_and_no_other(
    path: str, status: int, xprof: str, traces: Path, tmp_path: Path
) -> None:
    put_session(str(tmp_path / "runs"), traces, "first")
    async with viewing(str(tmp_path / "runs"), xprof, tmp_path / "cache") as viewer:
        assert (await viewer.get(path))[0] == status


@pytest.mark.parametrize("parameter", ["session_path", "run_path"])
async def test_places_in_a_request_never_reach_xprof(parameter: str, xprof: str, traces: Path, tmp_path: Path) -> None:
    put_session(str(tmp_path / "runs"), traces, "first")
    secret = tmp_path / "secret/tenant"
    secret.mkdir(parents=True)
    (secret / "host-0.xplane.pb").write_bytes(b"")
    query = urlencode({parameter: str(secret)})
    async with aiohttp.ClientSession() as direct, direct.get(f"{xprof}/runs?{query}") as response:
        assert parameter == "run_path" or await response.json() == ["tenant"], "XProf itself shows it"
    async with viewing(str(tmp_path / "runs"), xprof, tmp_path / "cache") as viewer:
        assert await viewer.document(f"{DATA}runs?{query}") == ["slow"]
        status, page, _ = await viewer.get(f"{DATA}capture_profile?service_addr=10.0.0.1:9999&{query}")
        assert (status, "<title>XProf</title>" in page) == (200, True)


async def test_a_session_larger_than_the_cache_is_refused_with_the_remedy(
    xprof: str, traces: Path, tmp_path: Path
) -> None:
    put_session(str(tmp_path / "runs"), traces, "first")
    async with viewing(str(tmp_path / "runs"), xprof, tmp_path / "cache", cache_bytes=10) as viewer:
        status, body, _ = await viewer.get(f"{DATA}runs")
        assert status == 507
        assert "view.xprof.cacheGiB" in body


async def test_an_xprof_that_has_ended_is_named(traces: Path, tmp_path: Path) -> None:
    put_session(str(tmp_path / "runs"), traces, "first")
    with xprof_server() as ended:
        pass
    async with viewing(str(tmp_path / "runs"), ended, tmp_path / "cache") as viewer:
        status, body, _ = await viewer.get(f"{DATA}runs")
        assert status == 502
        assert body.startswith('{"type": "about:blank", "title": "Bad Gateway", "status": 502, "detail": "XProf: ')


async def test_copies_of_a_process_before_are_deleted(xprof: str, traces: Path, tmp_path: Path) -> None:
    put_session(str(tmp_path / "runs"), traces, "first")
    for _ in range(2):
        async with viewing(str(tmp_path / "runs"), xprof, tmp_path / "cache") as viewer:
            await viewer.document(f"{DATA}runs")
            assert len(list((tmp_path / "cache/sessions").iterdir())) == 1


async def test_the_requests_of_one_tenant_leave_half_of_the_turns_to_others(tmp_path: Path) -> None:
    arrived, may_answer = asyncio.Queue[str](), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        await arrived.put(request.path)
        await may_answer.wait()
        return web.Response(text="shown")

    server = web.ServerRunner(web.Server(answer))
    await server.setup()
    listener = listen(0, "127.0.0.1")
    await web.SockSite(server, listener).start()
    hosted = HostedXprof(XprofHost(f"http://127.0.0.1:{listener.getsockname()[1]}", tmp_path / "cache", 1))

    async def read(path: str, tenant: str) -> str:
        async with hosted.response(path, {}, tenant=tenant) as response:
            return await response.text()

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        greedy = [group.create_task(read("/greedy", "greedy")) for _ in range(20)]
        first = [await arrived.get() for _ in range(MAX_XPROF_REQUESTS // 2)]
        other = group.create_task(read("/other", "other"))
        assert [*first, await arrived.get()] == ["/greedy"] * (MAX_XPROF_REQUESTS // 2) + ["/other"]
        may_answer.set()
    assert {each.result() for each in [*greedy, other]} == {"shown"}
    await hosted.aclose()
    await server.cleanup()
