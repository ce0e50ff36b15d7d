"""Sessions that the server of the page opens in the real XProf."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest
from mldiagnostics.store import open_store
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from mldiagnostics_view.xprof import local_servers
from support.programs.command_line import CommandLine
from support.run_files import put_run
from support.servers.buckets import BUCKETS
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}
MLDIAG = (sys.executable, "-P", "-m", "mldiagnostics_cli")
WITHOUT_XPROF = (
    sys.executable,
    "-c",
    "import sys; sys.modules['xprof'] = None; from mldiagnostics_cli.__main__ import main; main()",
)


@pytest.fixture
def mldiag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line, whose servers are those of the view: their state is in the folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return CommandLine(tmp_path, env={"XDG_STATE_HOME": str(tmp_path / "state")})


@pytest.fixture(params=["a directory", "s3", "az"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Two runs with a session each."""
    bucket = BUCKETS.get(request.param)
    root = f"{request.param}://{request.getfixturevalue(bucket)}/runs" if bucket else str(tmp_path / "runs")
    store = open_store(root)
    for run in ("first", "second"):
        put_run(store, run)
        store.put(f"{run}/plugins/profile/slow/host-0.xplane.pb", b"")
    store.put("outside/plugins/profile/slow/host-0.xplane.pb", b"")
    return root


class Viewer:
    """Opens sessions as the page does."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def open(self, run: str, session: str = "slow") -> tuple[int, dict[str, str]]:
        path = URL(f"/api/runs/runs/{run}/sessions/{session}/xprof", encoded=True)
        while True:  # the server waits for XProf, a few seconds at a time
            async with self._client.post(path, json={}) as response:
                document = await response.json(content_type=None)
                if response.status != 200 or document["url"]:
                    return response.status, document


@asynccontextmanager
async def viewing(root: str, command: tuple[str, ...]) -> AsyncIterator[Viewer]:
    settings = Settings(roots=(root,), port=0, mldiag=command)
    async with (
        serving(settings, ASSETS) as url,
        aiohttp.ClientSession(url, headers={"Sec-Fetch-Site": "same-origin"}) as client,
    ):
        yield Viewer(client)


@pytest.mark.peers
async def test_a_session_is_opened_in_one_server_that_ends_with_the_view(
    mldiag: CommandLine, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_servers, "MAX_XPROF_SERVERS", 1)
    async with viewing(root, MLDIAG) as viewer:
        status, opened = await viewer.open("first")
        assert status == 200, opened
        page = URL(opened["url"])
        assert (page.host, page.query["run"]) == ("127.0.0.1", "slow")
        async with aiohttp.ClientSession() as browser, browser.get(page.origin() / "data/plugin/profile/runs") as runs:
            assert await runs.json(content_type=None) == ["slow"]
        assert await viewer.open("first") == (200, opened)
        [server] = mldiag.document("xprof", "list", "--on", "local")
        assert server["logDirectory"] == f"{root}/first"
        status, problem = await viewer.open("second")
        assert status == 502
        assert f"end one with `mldiag xprof delete {server['name']} --on local`" in problem["detail"]
    assert mldiag.document("xprof", "list", "--on", "local") == []


@pytest.mark.parametrize("root", ["a directory"], indirect=True)
async def test_names_that_are_paths_and_a_missing_xprof_are_problems(mldiag: CommandLine, root: str) -> None:
    async with viewing(root, WITHOUT_XPROF) as viewer:
        tricks = ("..%2f..%2f..%2foutside%2fplugins%2fprofile%2fslow", "..", ".", "%2e%2e", "slow%2f", "%00", "none")
        for session in tricks:
            assert (await viewer.open("first", session))[0] in (404, 405), session
        for run in ("..%2foutside", "outside", "%2fetc"):
            assert (await viewer.open(run))[0] == 404, run
        status, problem = await viewer.open("first")
        assert (status, problem["detail"].startswith("xprof: is not installed; pip install")) == (502, True), problem
    assert mldiag.document("xprof", "list", "--on", "local") == []
