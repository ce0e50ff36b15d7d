"""The server over files that the SDK has written."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from mldiagnostics import machinelearning_run, metrics
from mldiagnostics.pipeline.records import Record
from mldiagnostics.store import open_store
from mldiagnostics_view.endpoints import live
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.limits import MAX_BODY_BYTES
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from support.run_files import put_records, put_run
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}
STEPS = 1000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one run by the SDK and one whose name is markup."""
    folder = tmp_path_factory.mktemp("runs")
    with machinelearning_run("resnet", configs={"lr": 0.1}, storage=str(folder), run_workload_id="trained") as run:
        for step in range(STEPS):
            run.step(step)
            metrics.record("loss", float(STEPS - step), step=step, timestamp=1e9 + step)
        metrics.record("loss", float("nan"), step=STEPS)
    put_run(open_store(str(folder)), "other", name="<script>alert(1)</script>", created=1.0)
    return folder


@pytest.fixture
async def server(root: Path) -> AsyncIterator[aiohttp.ClientSession]:
    settings = Settings(roots=(str(root), str(root / "missing")), port=0)
    async with serving(settings, ASSETS) as url, aiohttp.ClientSession(url) as client:
        yield client


async def read(server: aiohttp.ClientSession, path: str, **parameters: Any) -> tuple[int, dict[str, Any]]:
    async with server.get(path, params=parameters) as response:
        return response.status, json.loads(await response.text())


async def test_a_run_is_listed_and_shown(server: aiohttp.ClientSession, root: Path) -> None:
    _, listed = await read(server, "/api/runs")
    keys = {run["key"]: run for run in listed["runs"]}
    assert keys.keys() == {"trained", "other"}
    assert keys["other"]["displayName"] == "<script>alert(1)</script>"
    readable, missing = listed["sources"]
    assert (readable["place"], readable["problem"]) == (str(root), None)
    assert "no such directory" in missing["problem"]
    status, run = await read(server, f"/api/runs/{readable['name']}/trained")
    assert status == 200
    assert run["run"]["phase"] == "Completed"
    assert run["configs"]["user"]["lr"] == 0.1
    assert [host["rank"] for host in run["hosts"]] == [0]
    assert (await read(server, f"/api/runs/{readable['name']}/trained/goodput"))[0] == 200
    for path in (f"/api/runs/{readable['name']}/train", "/api/runs/none/trained", "/api/runs/x/..%2f..%2fetc"):
        status, problem = await read(server, path)
        assert (status, problem["status"]) == (404, 404)


async def test_a_window_has_every_extreme(server: aiohttp.ClientSession, root: Path) -> None:
    await read(server, "/api/runs")
    base = f"/api/runs/{root.name}/trained"
    while not (shown := (await read(server, f"{base}/metrics"))[1])["progress"]["complete"]:
        pass
    [loss] = [metric for metric in shown["metrics"] if metric["metric"] == "loss"]
    assert loss["count"] == STEPS + 1
    [curve] = (await read(server, f"{base}/curves", metric="loss", buckets=10))[1]["curves"]
    assert (max(curve["high"]), min(curve["low"]), len(curve["x"])) == (STEPS, 1, 10)
    window = {"metric": "loss", "from": 500, "to": 509, "buckets": 100}
    [curve] = (await read(server, f"{base}/curves", **window))[1]["curves"]
    assert curve["x"] == list(range(500, 510))
    assert curve["mean"] == [STEPS - step for step in range(500, 510)]
    assert "low" not in curve
    assert curve["summary"]["last"] == {"x": 509, "value": STEPS - 509}
    for bad in ({}, {"metric": "loss", "buckets": 10**9}, {"metric": "loss", "from": "nan"}, {"metric": "a", "x": 1}):
        status, problem = await read(server, f"{base}/curves", **bad)
        assert (status, problem["title"]) == (400, "Bad Request")


async def test_numbers_are_exact_and_name_what_is_not_finite(server: aiohttp.ClientSession, root: Path) -> None:
    await read(server, "/api/runs")
    base = f"/api/runs/{root.name}/trained"
    while not (shown := (await read(server, f"{base}/metrics"))[1])["progress"]["complete"]:
        pass
    assert [metric["lastValue"] for metric in shown["metrics"] if metric["metric"] == "loss"] == ["NaN"]
    for buckets in (3, 100):
        [curve] = (await read(server, f"{base}/curves", metric="loss", buckets=buckets))[1]["curves"]
        assert curve["summary"] == {
            "count": STEPS + 1,
            "nonfinite": {"nan": 1, "plus": 0, "minus": 0},
            "lowest": 1,
            "highest": STEPS,
            "average": (STEPS + 1) / 2,
            "last": {"x": STEPS, "value": "NaN"},
        }
        assert (curve["nonfinite"]["x"], curve["nonfinite"]["nan"]) == ([STEPS], [1])
    _, table = await read(server, f"{base}/points", metric="loss", **{"from": 998})
    place = [table["columns"].index(name) for name in ("step", "value")]
    assert [[row[at] for at in place] for row in table["rows"]] == [[998, 2.0], [999, 1.0], [1000, "NaN"]]
    async with server.get(f"{base}/points.csv", params={"metric": "loss"}) as response:
        lines = (await response.text()).splitlines()
    assert (len(lines), lines[0].split(",")[-1], lines[-1].split(",")[-1]) == (STEPS + 2, "value", "NaN")


async def test_restarts_profiles_and_texts_stand_at_their_steps(tmp_path: Path) -> None:
    def step(number: int, t: float, attempt: int) -> Record:
        payload = {"job_name": "job", "step_count": number, "step_start_time": t}
        return Record("event", t, "goodput", attempt=attempt, payload=payload)

    store = open_store(str(tmp_path / "runs"))
    put_run(store, "trained")
    profiles = [Record("session", 50.5, "a0-n1"), Record("session", 70.0, "a0-s70", step=70)]
    long = "x" * 500
    texts = [Record("event", 60.0 + at, "note", step=60 + at, payload={"message": f"{at} {long}"}) for at in range(60)]
    put_records(
        store, "trained", "a0-r0-aaaaaaaa-00001", *(step(at, float(at), 0) for at in range(90)), *profiles, *texts
    )
    put_records(store, "trained", "a1-r0-bbbbbbbb-00001", *(step(at, 100.0 + at, 1) for at in range(41, 90)))
    settings = Settings(roots=(str(tmp_path / "runs"),), port=0)
    async with serving(settings, ASSETS) as url, aiohttp.ClientSession(url) as client:
        _, shown = await read(client, "/api/runs/runs/trained/metrics")
    assert shown["starts"] == [{"t": 0.0, "step": 0}, {"t": 141.0, "step": 41}]
    assert shown["sessions"] == {"a0-n1": {"t": 50.5, "step": 50}, "a0-s70": {"t": 70.0, "step": 70}}
    assert [(mark["t"], mark["step"]) for mark in shown["texts"]] == [(60.0 + at, 60 + at) for at in range(10, 60)]
    assert shown["texts"][-1]["text"] == f"note: 59 {long}"[:200]


async def test_the_time_of_listed_runs(server: aiohttp.ClientSession, root: Path) -> None:
    await read(server, "/api/runs")
    names = [f"{root.name}/trained", f"{root.name}/other", f"{root.name}/gone", "nowhere/trained"]
    status, listed = await read(server, "/api/goodput", run=names)
    assert status == 200
    assert listed["runs"].keys() == set(names[:2])
    assert listed["runs"][names[1]] is None
    account = listed["runs"][names[0]]
    whole = account["productiveSeconds"] + sum(account["unproductiveSeconds"].values())
    assert whole == pytest.approx(account["elapsedSeconds"])
    status, steps = await read(server, f"/api/runs/{root.name}/trained/steptimes")
    assert (status, steps["count"]) == (200, STEPS - 1)
    # A step of this run can be shorter than a microsecond, the resolution of its records.
    assert 0 <= steps["min"] <= steps["median"] <= steps["p99"] <= steps["max"]
    assert steps["max"] > 0
    assert (await read(server, f"/api/runs/{root.name}/other/steptimes"))[1]["count"] == 0
    for bad in ({}, {"run": names * 10 + [f"a/{at}" for at in range(33)]}, {"runs": names[0]}):
        assert (await read(server, "/api/goodput", **bad))[0] == 400
    async with server.get("/an/old/link") as page:
        assert (page.status, page.content_type) == (404, "text/html")
    assert (await read(server, "/api/unknown"))[0] == 404


async def test_the_values_of_listed_runs(server: aiohttp.ClientSession, root: Path) -> None:
    await read(server, "/api/runs")
    names = [f"{root.name}/trained", f"{root.name}/other", f"{root.name}/gone"]
    status, listed = await read(server, "/api/values", run=names)
    assert (status, listed["runs"].keys()) == (200, set(names[:2]))
    trained = listed["runs"][names[0]]
    assert trained["configs"]["user.lr"] == 0.1
    assert trained["metrics"]["loss"] == "NaN"
    shown = (await read(server, f"/api/runs/{names[0]}/metrics"))[1]["metrics"]
    assert trained["metrics"].keys() == {metric["metric"] for metric in shown}
    assert listed["runs"][names[1]] == {"configs": {}, "metrics": {}}
    assert (await read(server, "/api/values", run=names, runs="x"))[0] == 400


async def test_foreign_pages_are_rejected(server: aiohttp.ClientSession) -> None:
    for headers, status in (
        ({"Host": "evil.example"}, 421),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({}, 200),
    ):
        async with server.get("/api/runs", headers=headers) as response:
            assert response.status == status
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
    for method in ("PUT", "DELETE", "OPTIONS"):
        async with server.request(method, "/api/runs") as response:
            assert response.status == 405
    async with server.get("/api/runs") as response:
        etag = response.headers["ETag"]
    async with server.get("/api/runs", headers={"If-None-Match": etag}) as response:
        assert response.status == 304


async def test_only_the_own_page_changes_something(server: aiohttp.ClientSession, root: Path) -> None:
    await read(server, "/api/runs")
    base = f"/api/runs/{root.name}/trained"
    own = f"http://{server._base_url.authority}"
    order = b'{"orderId": "0123456789", "ranks": [0], "durationMilliseconds": 10}'
    json_type = {"Content-Type": "application/json"}
    same = {"Sec-Fetch-Site": "same-origin"}
    for headers, body, status in (
        (json_type, order, 403),
        ({**json_type, "Origin": "https://evil.example"}, order, 403),
        ({**json_type, "Origin": "null"}, order, 403),
        ({**json_type, "Origin": f"{own}1"}, order, 403),
        ({**json_type, "Origin": own, "Sec-Fetch-Site": "same-site"}, order, 403),
        ({**json_type, "Origin": own, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, order, 403),
        ({"Origin": own, "Content-Type": "text/plain"}, order, 415),
        ({"Origin": own, "Content-Type": "application/x-www-form-urlencoded"}, order, 415),
        ({**json_type, **same}, b" " * (MAX_BODY_BYTES + 1), 413),
        ({**json_type, **same}, b"{}", 400),
        ({**json_type, **same}, b'{"orderId": "0123456789", "ranks": [], "durationMilliseconds": 10}', 400),
        ({**json_type, **same}, order, 409),  # the run has ended
        ({**json_type, "Origin": own}, order, 409),
    ):
        async with server.post(f"{base}/captures", data=body, headers=headers) as response:
            assert (response.status, response.content_type) == (status, "application/problem+json"), headers
    chunks = (b" " * 1024 for _ in range(MAX_BODY_BYTES))
    async with server.post(f"{base}/captures", data=_all(chunks), headers={**json_type, **same}) as response:
        assert response.status == 413


async def _all(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_source_of_files_has_neither_captures_nor_xprof_without_the_command_line(tmp_path: Path) -> None:
    put_run(open_store(str(tmp_path)), "open", phase="Active")
    line = Record("phase", time.time(), "Active", rank=0, attempt=0, payload={"host": "h"})
    put_records(open_store(str(tmp_path)), "open", "a0-r0-00000000-00001", line)
    headers = {"Sec-Fetch-Site": "same-origin"}
    async with (
        serving(Settings(roots=(str(tmp_path),), port=0), ASSETS) as url,
        aiohttp.ClientSession(url, headers=headers) as client,
    ):
        source = (await read(client, "/api/runs"))[1]["sources"][0]["name"]
        base = f"/api/runs/{source}/open"
        _, run = await read(client, base)
        assert (run["canCapture"], run["captureObstacle"], run["canOpenXprof"]) == (False, None, False)
        [host] = run["hosts"]
        for path, body, status in (
            (f"{base}/captures", {"orderId": "0123456789", "ranks": [host["rank"]], "durationMilliseconds": 10}, 403),
            (f"{base}/captures/any/cancel", {}, 403),
            (f"{base}/sessions/any/xprof", {}, 409),
            (
                f"/api/runs/{source}/gone/captures",
                {"orderId": "0123456789", "ranks": [0], "durationMilliseconds": 10},
                404,
            ),
        ):
            async with client.post(path, json=body) as response:
                assert response.status == status, await response.text()


async def test_a_broken_run_does_not_hide_others_and_a_deleted_one_ends_its_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "REFRESH_S", 0.05)
    store = open_store(str(tmp_path))
    put_run(store, "open")
    line = Record(kind="metric", t=1.0, name="loss", value=0.5, step=1, rank=0, attempt=0)
    put_records(store, "open", "a0-r0-00000000-00001", line, torn=b'{"v": 1, "kind": "met')
    store.put("half/run.json", b'{"v": 1, "runId": "ha')
    store.put("other/run.json", b"[1, 2]")
    async with (
        serving(Settings(roots=(str(tmp_path),), port=0), ASSETS) as url,
        aiohttp.ClientSession(url) as client,
    ):
        _, listed = await read(client, "/api/runs")
        assert "open" in {run["key"] for run in listed["runs"]}
        base = f"/api/runs/{listed['sources'][0]['name']}"
        for key in ("half", "other", "%00", "..%2fopen", "open%2f..%2fopen", "x" * 300):
            async with client.get(URL(f"{base}/{key}", encoded=True)) as response:
                assert response.status < 500, key
                assert response.content_type in ("application/json", "application/problem+json")
        async with client.get(f"{base}/open/live") as stream:
            while not (await stream.content.readline()).startswith(b"event: curves"):
                pass
            shutil.rmtree(tmp_path / "open")
            assert (await stream.content.read()).endswith(b'event: run\ndata: {"revision":""}\n\n')
        assert (await read(client, f"{base}/open"))[0] == 404


async def test_a_stream_sends_the_first_state(server: aiohttp.ClientSession, root: Path) -> None:
    await read(server, "/api/runs")
    async with server.get(f"/api/runs/{root.name}/trained/live") as stream:
        events = set()
        while events != {b"run", b"curves", b"progress"}:
            line = await stream.content.readline()
            assert line
            if line.startswith(b"event: "):
                events.add(line.removeprefix(b"event: ").strip())
