"""The server of a deployment over a real API server: each viewer sees the runs that RBAC shows them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aiohttp
import pytest
from mldiagnostics.store import open_store
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.resources import RUNS, SCHEDULES
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_view import authorization
from mldiagnostics_view.deployment import serving
from mldiagnostics_view.deployment_settings import load
from mldiagnostics_view.endpoints.bodies import Body
from support.cluster.definitions import install
from support.cluster.grants import grant
from support.cluster.view_deployments import HOST, SECRET, account_of_chart, environment, make_run
from support.programs.xprof_server import xprof_server
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

ASSETS = {"index.html": Body(b"<!doctype html>", "text/html")}
READ = ["get", "list", "watch"]
RUN = "4f6c" + 60 * "0"
LIMIT_S = 60


async def test_a_tenant_sees_what_kubectl_get_mlruns_shows(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await install(admin, RUNS)
    await install(admin, SCHEDULES)
    other = f"other-{uuid4().hex[:8]}"
    await admin.create(path_to("", "v1", "namespaces"), {"metadata": {"name": other}})
    mlruns = {"apiGroups": ["diagon.gke.io"], "resources": ["mlruns"], "verbs": READ}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": READ}
    schedules = {"apiGroups": ["diagon.gke.io"], "resources": ["mldiagnosticsschedules"], "verbs": READ}
    await grant(admin, namespace, "jane", mlruns, pods, schedules)
    await grant(admin, other, "research", mlruns, kind="Group")
    await make_run(admin, namespace, "own", RUN)
    await make_run(admin, other, "foreign", "81aa" + 60 * "0")
    await make_run(admin, other, "thief", RUN)  # its author wants to see the files of the run of another namespace
    often = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": {"name": "often"}}
    for each in (namespace, other):
        path = path_to(*SCHEDULES.gvr, namespace=each)
        await admin.create(path, {**often, "spec": {"schedule": {"every": "6h"}}})
    put_run(open_store(str(tmp_path / "volume")), RUN, namespace=namespace, records=1)

    config = load(environment(tmp_path, MLDIAG_VOLUME_ROOT=str(tmp_path / "volume")))
    assert config.policy == Policy()
    monkeypatch.setattr(authorization, "VERDICT_AGE_S", 0)  # the API server learns rights late
    client = await account_of_chart(api_server, admin, tmp_path)
    async with serving(config, client, ASSETS) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as browser:

        async def get(path: str, user: str = "", groups: str = "", **headers: str) -> tuple[int, Any]:
            named = {"X-Forwarded-User": user, "X-Forwarded-Groups": groups}
            given = {"Host": HOST, "X-Mldiag-Proxy-Secret": SECRET, **named, **headers}
            async with browser.get(path, headers=given) as response:
                return response.status, await response.json(content_type=None)

        async def names(user: str, groups: str = "") -> set[str]:
            _, body = await get("/api/runs", user, groups)
            return {run["key"].rpartition(":")[2] for run in body["runs"] if run["namespace"] in (namespace, other)}

        async with asyncio.timeout(LIMIT_S):
            while (await get("/api/runs", "jane"))[0] != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # until the API server has learned the rights of the account
            while await names("jane") != {"own"} or await names("joe", "a, research") != {"foreign", "thief"}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # until the API server has learned the rights
        assert await names("mallory") == set()
        assert [source["problem"] for source in (await get("/api/runs", "jane"))[1]["sources"]] == [None]
        assert await names("jane", "system:masters") == {"own"}

        keys = (f"{namespace}:own", f"{other}:foreign", f"{other}:thief")
        own, foreign, thief = (f"/api/runs/cluster/{key}" for key in keys)
        assert len((await get(own, "jane"))[1]["hosts"]) == 1
        assert (await get(foreign, "joe", "research"))[1]["hosts"] == []  # joe may not list pods
        assert [each["name"] for each in (await get(f"{own}/schedules", "jane"))[1]["schedules"]] == ["often"]
        assert (await get(f"{foreign}/schedules", "joe", "research"))[1]["schedules"] == []  # joe may not list them
        for path in (
            foreign,
            f"{foreign}/schedules",
            f"{foreign}/curves?metric=loss",
            f"{foreign}/goodput",
            f"{foreign}/live",
        ):
            assert (await get(path, "jane"))[0] == 404
        values = (await get(f"/api/values?run=cluster/{keys[0]}&run=cluster/{keys[1]}", "jane"))[1]["runs"]
        assert values.keys() == {f"cluster/{keys[0]}"}
        assert (await get(f"{own}/metrics", "jane"))[0] == 200
        assert (await get(f"{thief}/metrics", "joe", "research"))[0] == 409

        linked = {"Host": HOST, "X-Mldiag-Proxy-Secret": SECRET, "X-Forwarded-User": "jane"}
        async with browser.get(f"/{RUN}", headers=linked, allow_redirects=False) as link:
            assert (link.status, link.headers["Location"]) == (302, f"/runs/cluster/{namespace}:own")

        for headers in (
            {"X-Mldiag-Proxy-Secret": "guessed"},
            {"X-Forwarded-User": ""},
            {"X-Forwarded-User": "system:admin"},
            {"X-Forwarded-User": "system:serviceaccount:kube-system:default"},
        ):
            assert (await get("/api/runs", **{"user": "jane", **headers}))[0] == 401
        assert (await get("/api/runs", "jane", Host="evil.example"))[0] == 421


@pytest.mark.peers
async def test_a_link_of_a_session_in_xprof_works_for_viewers_of_its_run_alone(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await install(admin, RUNS)
    mlruns = {"apiGroups": ["diagon.gke.io"], "resources": ["mlruns"], "verbs": READ}
    await grant(admin, namespace, "jane", mlruns)
    await make_run(admin, namespace, "own", RUN)
    volume = open_store(str(tmp_path / "volume"))
    put_run(volume, RUN, namespace=namespace, records=1)
    volume.put(f"{RUN}/plugins/profile/slow/host-0.xplane.pb", b"")
    monkeypatch.setattr(authorization, "VERDICT_AGE_S", 0)  # the API server learns rights late
    client = await account_of_chart(api_server, admin, tmp_path)
    with xprof_server() as xprof:
        variables = {
            "MLDIAG_VOLUME_ROOT": str(tmp_path / "volume"),
            "MLDIAG_VIEW_XPROF_URL": xprof,
            "MLDIAG_VIEW_XPROF_CACHE": str(tmp_path / "cache"),
        }
        config = load(environment(tmp_path, **variables))
        async with (
            serving(config, client, ASSETS) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as browser,
        ):

            async def get(path: str, user: str, secret: str = SECRET) -> tuple[int, Any]:
                given = {"Host": HOST, "X-Mldiag-Proxy-Secret": secret, "X-Forwarded-User": user}
                async with browser.get(f"/xprof/cluster/{namespace}:own/slow/{path}", headers=given) as response:
                    return response.status, await response.json(content_type=None)

            runs = "data/plugin/profile/runs"
            async with asyncio.timeout(LIMIT_S):
                while await get(runs, "jane") != (200, ["slow"]):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)  # until the API server has learned the rights
            for path in (runs, "data/plugin/profile/data?run=slow&tag=trace_viewer", "data/plugin/profile/index"):
                assert (await get(path, "joe"))[0] == 404
                assert (await get(path, "jane", "guessed"))[0] == 401
