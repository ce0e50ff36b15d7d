"""Files that a source should not have: the server shows the rest, says what is missing, and keeps its bounds."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import aiohttp
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view import limits
from mldiagnostics_view.curves import reader
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from mldiagnostics_view.sources import files
from support.run_files import put_records, put_run
from support.servers.emulator import running_emulator
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}
MANY = 20_000
BASE = "/api/runs/runs"


@asynccontextmanager
async def server(root: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(Settings(roots=(root,), port=0), ASSETS) as url, aiohttp.ClientSession(url) as client:
        yield client


async def read(client: aiohttp.ClientSession, path: str, **parameters: Any) -> tuple[int, dict[str, Any]]:
    async with client.get(path, params=parameters) as response:
        return response.status, json.loads(await response.text())


async def read_all(client: aiohttp.ClientSession, path: str, **parameters: Any) -> dict[str, Any]:
    """Return a document once all lines are read."""
    while not (shown := (await read(client, path, **parameters))[1])["progress"]["complete"]:
        pass
    return shown


async def test_a_broken_run_json_is_named_and_hides_no_other(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "good")
    for name, content in (
        ("half", b'{"v": 1, "runId": "ha'),
        ("list", b"[1, 2]"),
        ("binary", b"\x80\x81"),
        ("deep", b'{"configs":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001),
        ("empty", b""),
        ("large", b'{"name": "' + b"x" * 5 * 2**20 + b'"}'),
    ):
        store.put(f"{name}/run.json", content)
    async with server(str(tmp_path / "runs")) as client:
        _, listed = await read(client, "/api/runs")
        assert [run["key"] for run in listed["runs"]] == ["good"]
        problem = listed["sources"][0]["problem"]
        assert "6 with a broken run.json left out: binary, deep, empty, …; repair or delete" in problem
        status, answer = await read(client, f"{BASE}/half")
        assert (status, answer["detail"]) == (404, "half: its run.json cannot be read; repair or delete the file.")


async def test_stored_values_that_json_can_hardly_say(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    nested = json.loads('{"a":' * 300 + "1" + "}" * 300)
    configs = {"user": {"nan": float("nan"), "deep": nested, "long": "x" * 10**5, "large": 10**40, "half": "\ud800"}}
    put_run(store, "odd", name="half \ud800", message="m" * 10**5, attempt=10**30, created=1e308, configs=configs)
    put_records(
        store,
        "odd",
        "a0-r0-00000000-00001",
        *(Record("metric", t, "\ud800", 1.0, labels={"\ud800": "\udfff"}, rank=0, attempt=0) for t in (1e308, 5.0)),
    )
    async with server(str(tmp_path / "runs")) as client:
        status, listed = await read(client, "/api/runs")
        assert (status, listed["runs"][0]["displayName"]) == (200, "half \ud800")
        assert len(json.dumps(listed)) < 20_000
        status, shown = await read(client, f"{BASE}/odd")
        assert status == 200
        user = shown["configs"]["user"]
        assert (user["nan"], user["large"], len(user["long"])) == ("NaN", 10**40, limits.MAX_TEXT_CHARS + 1)
        assert json.dumps(user["deep"]).count("a") < limits.MAX_DEPTH
        assert [each["metric"] for each in (await read_all(client, f"{BASE}/odd/metrics"))["metrics"]] == ["\ud800"]
        for path in ("ranks", "goodput", "steptimes"):
            assert (await read(client, f"{BASE}/odd/{path}"))[0] == 200


async def test_half_written_and_foreign_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "torn")
    lines = [Record("metric", float(t), "loss", 1.0, step=t, rank=0, attempt=0) for t in range(10)]
    put_records(store, "torn", "a0-r0-00000000-00001", *lines, torn=b'{"v":1,"kind":"metric","na\n\x00\xff\n')
    put_records(store, "torn", "a0-r0-00000000-00002", *lines, torn=b'{"v":1,"kind":"metric","t":11,"name":"lo')
    async with server(str(tmp_path / "runs")) as client:
        shown = await read_all(client, f"{BASE}/torn/metrics")
        assert [(each["metric"], each["count"]) for each in shown["metrics"]] == [("loss", 20)]
        assert shown["progress"]["badLines"] == 2, "a line that is still written is not counted"


async def test_very_many_metrics_are_bounded_and_found_by_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_CURVE_BYTES", 16 * 2**20)
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "many")
    names = [f"layer/{at:05}/norm" for at in range(MANY)]
    points = [Record("metric", 1.0, name, 1.0, step=1, rank=0, attempt=0) for name in ["loss", "x" * 3000, *names]]
    put_records(store, "many", "a0-r0-00000000-00001", *points)
    async with server(str(tmp_path / "runs")) as client:
        shown = await read_all(client, f"{BASE}/many/metrics")
        listed, progress = [each["metric"] for each in shown["metrics"]], shown["progress"]
        left_out = progress["leftOut"]
        assert listed == ["loss", *names[: limits.MAX_LISTED_METRICS - 1]]
        assert progress["longNames"] == 1
        assert shown["omitted"] + len(listed) + left_out == MANY + 1
        assert 0 < left_out < MANY
        answer = await read_all(client, f"{BASE}/many/metrics", q="03001 LAYER")
        assert ([each["metric"] for each in answer["metrics"]], answer["omitted"]) == (["layer/03001/norm"], 0)
        async with client.get(f"{BASE}/many/metrics") as response:
            assert len(await response.read()) < 2**20


async def test_many_curves_share_the_buckets_of_one_response(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "runs"))
    put_run(store, "wide")
    points = [
        Record("metric", float(t), "loss", 1.0, step=t, labels={"part": str(part)}, rank=0, attempt=0)
        for part in range(300)
        for t in range(400)
    ]
    put_records(store, "wide", "a0-r0-00000000-00001", *points)
    async with server(str(tmp_path / "runs")) as client:
        shown = await read_all(client, f"{BASE}/wide/curves", metric="loss", buckets=limits.MAX_BUCKETS)
        assert (len(shown["curves"]), shown["omitted"]) == (limits.MAX_SERIES, 300 - limits.MAX_SERIES)
        assert limits.MAX_CURVE_BUCKETS < 400 * limits.MAX_SERIES
        assert sum(len(curve["x"]) for curve in shown["curves"]) <= limits.MAX_CURVE_BUCKETS


async def test_a_bucket_that_refuses_has_its_reason_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    monkeypatch.setattr(files, "REFRESH_S", 0.0)
    with running_emulator() as emulator, faulty_proxy(emulator) as proxy:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        emulator.make_bucket("runs")
        put_run(open_store("gs://runs"), "run")
        async with server("gs://runs") as client:
            _, listed = await read(client, "/api/runs")
            assert ([run["key"] for run in listed["runs"]], listed["sources"][0]["problem"]) == (["run"], None)
            proxy.otherwise = 403
            async with asyncio.timeout(60):
                while not (problem := listed["sources"][0]["problem"]):
                    _, listed = await read(client, "/api/runs")
            assert "gs://runs" in problem
            assert [run["key"] for run in listed["runs"]] == ["run"], "the last list stays"
            status, answer = await read(client, f"{BASE}/run")
            assert status == 403
            assert "gs://runs" in answer["detail"]
            assert (await read(client, f"{BASE}/run/metrics"))[0] == 403
            proxy.otherwise = "pass"
            async with asyncio.timeout(60):
                while listed["sources"][0]["problem"]:
                    _, listed = await read(client, "/api/runs")
            assert (await read(client, f"{BASE}/run"))[0] == 200


async def test_a_source_that_does_not_respond_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FIRST_LIST_S", 0.0)
    put_run(open_store(str(tmp_path / "runs")), "late")
    async with server(str(tmp_path / "runs")) as client:
        _, listed = await read(client, "/api/runs")
        assert "has not responded yet; its runs appear once it does" in listed["sources"][0]["problem"]
        async with asyncio.timeout(60):
            while not listed["runs"]:
                _, listed = await read(client, "/api/runs")
        assert listed["sources"][0]["problem"] is None


async def test_a_list_that_fails_unexpectedly_has_a_reason_and_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_run(open_store(str(tmp_path / "runs")), "run")
    monkeypatch.setattr(files, "REFRESH_S", 0.0)
    async with server(str(tmp_path / "runs")) as client:
        with monkeypatch.context() as failing:
            failing.setattr(files, "list_runs", Mock(side_effect=RecursionError))
            _, listed = await read(client, "/api/runs")
        assert "listing the runs failed with RecursionError; the output" in listed["sources"][0]["problem"]
        async with asyncio.timeout(60):
            while not listed["runs"]:
                _, listed = await read(client, "/api/runs")
        assert listed["sources"][0]["problem"] is None
