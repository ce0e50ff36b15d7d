from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client.api_client import PAGE, PAGE_BYTES, ApiClient
from mldiagnostics_kube.client.apiserver import (
    JSON_PATCH,
    ClusterError,
    Conflict,
    NamespaceTerminating,
    NotFound,
    RequestRejected,
    Unavailable,
    path_to,
)
from support.servers.brief_server import brief_server

if TYPE_CHECKING:
    from pathlib import Path


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"half": str(len(name) % 2)}}, "data": data}


def test_paths_follow_the_api_conventions() -> None:
    assert path_to("", "v1", "pods", namespace="ml", name="a") == "/api/v1/namespaces/ml/pods/a"
    assert path_to("apps", "v1", "deployments") == "/apis/apps/v1/deployments"
    assert path_to("g.io", "v2", "things", namespace="n", name="t", sub="status").endswith(
        "/namespaces/n/things/t/status"
    )


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_an_object_through_all_verbs(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        made = await cluster.create(maps, config_map("a", k="1"))
        assert (await cluster.get(f"{maps}/a"))["data"] == {"k": "1"}
        assert (await cluster.patch(f"{maps}/a", {"data": {"l": "2"}}))["data"] == {"k": "1", "l": "2"}
        operations = [{"op": "remove", "path": "/data/k"}]
        patched = await cluster.patch(f"{maps}/a", operations, content_type=JSON_PATCH)
        assert patched["data"] == {"l": "2"}
        assert (await cluster.replace(f"{maps}/a", {**patched, "data": {}})).get("data", {}) == {}
        await cluster.delete(f"{maps}/a", uid=made["metadata"]["uid"])
        with pytest.raises(NotFound, match=r'configmaps "a" not found'):
            await cluster.get(f"{maps}/a")

    async def test_a_namespace_that_is_deleted_takes_nothing_new(self, cluster: ApiClient, namespace: str) -> None:
        await cluster.request("DELETE", path_to("", "v1", "namespaces", name=namespace))
        with pytest.raises(NamespaceTerminating, match="being terminated"):
            await cluster.create(path_to("", "v1", "configmaps", namespace=namespace), config_map("late"))

    async def test_a_list_reads_all_pages(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        names = sorted(f"m{n}" for n in range(PAGE + 7))
        at_a_time = asyncio.Semaphore(20)  # a busy server takes more than 10 s for all at once

        async def create(name: str) -> None:
            async with at_a_time:
                await cluster.create(maps, config_map(name))

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(create(name))
        assert await cluster.items(maps, lambda item: item["metadata"]["name"]) == names
        halves = [len(await cluster.items(maps, id, labels=f"half={half}")) for half in "01"]
        assert sum(halves) == len(names)
        assert await cluster.items(maps, lambda item: item["metadata"]["name"], fields="metadata.name=m3") == ["m3"]

    async def test_a_list_of_large_objects_takes_the_memory_of_one_page(
        self, cluster: ApiClient, namespace: str
    ) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        names = sorted(f"m{n}" for n in range(40))
        for name in names:
            await cluster.create(maps, config_map(name, k="x" * 250_000))
        tracemalloc.start()
        try:
            assert await cluster.items(maps, lambda item: item["metadata"]["name"]) == names
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 12 * PAGE_BYTES  # the 10 MB as one page take 140 MB
        assert await cluster.items(maps, lambda item: item["metadata"]["name"], most=3) == names[:3]
        assert (await cluster.names(maps, most=3), await cluster.names(maps, most=100)) == (names[:3], names)

    async def test_an_object_of_another_uid_is_not_deleted(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        await cluster.create(maps, config_map("a"))
        with pytest.raises(Conflict, match="UID"):
            await cluster.delete(f"{maps}/a", uid="of-another")
        await cluster.get(f"{maps}/a")

    async def test_invalid_requests_are_rejected_or_conflict(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        with pytest.raises(RequestRejected, match="Not A Name") as failure:
            await cluster.create(maps, config_map("Not A Name"))
        assert failure.value.status == 422
        await cluster.create(maps, config_map("a"))
        with pytest.raises(Conflict, match="already exists"):
            await cluster.create(maps, config_map("a"))


async def connect_to(url: str, folder: Path) -> ApiClient:
    path = folder / "kubeconfig"
    cluster, context, user = {"server": url}, {"cluster": "it", "user": "me"}, {"token": "secret"}
    body = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "contexts": [{"name": "it", "context": context}],
        "users": [{"name": "me", "user": user}],
    }
    path.write_text(json.dumps(body))
    return await ApiClient.connect({"KUBECONFIG": str(path)})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, Unavailable),
        (b"", Unavailable),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy", Unavailable),
        (b'HTTP/1.1 410 Gone\r\nContent-Length: 27\r\n\r\n{"message":"token expired"}', Unavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", Unavailable),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nstop", RequestRejected),
    ],
    ids=["silence", "closed", "503", "410", "a proxy's page", "403"],
)
async def test_temporary_failures_differ_from_permanent_ones(
    answer: bytes | None, kind: type[ClusterError], tmp_path: Path
) -> None:
    async with brief_server(answer) as url:
        client = await connect_to(url, tmp_path)
        try:
            with pytest.raises(ClusterError, match="GET /version") as failure:
                await client.get("/version", timeout_s=0.3 if answer is None else 60)
            assert type(failure.value) is kind
        finally:
            await client.aclose()


async def test_redirects_are_not_followed_because_credentials_are_for_one_address(tmp_path: Path) -> None:
    requests = list[str]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/version\r\nContent-Length: 0\r\n\r\n"
        async with brief_server(moved.encode()) as url:
            client = await connect_to(url, tmp_path)
            try:
                with pytest.raises(RequestRejected, match="returned 302: redirects are not followed"):
                    await client.get("/version")
                with pytest.raises(RequestRejected, match="returned 302: redirects are not followed"):
                    await anext(aiter(client.watch("/version", "1")))
            finally:
                await client.aclose()
    assert not requests
