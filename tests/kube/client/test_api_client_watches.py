from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_kube.client.api_client import FIRST_PAGE, ApiClient
from mldiagnostics_kube.client.apiserver import (
    ClusterError,
    InvalidResponse,
    NotFound,
    RequestRejected,
    Unavailable,
    path_to,
)
from mldiagnostics_kube.client.credentials import Credentials, fixed
from support.servers.brief_server import brief_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"number": name}}, "data": {"k": "v"}}


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_only_metadata_is_read(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        made = await cluster.create(maps, config_map("a"))
        partial = await cluster.get(f"{maps}/a", metadata_only=True)
        assert (partial["metadata"]["uid"], partial.get("data")) == (made["metadata"]["uid"], None)
        assert (await cluster.get(f"{maps}/a"))["data"] == {"k": "v"}

    async def test_a_list_reads_all_pages_and_a_watch_resumes_from_it(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        names = sorted(f"m{n}" for n in range(FIRST_PAGE + 7))
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(cluster.create(maps, config_map(name)))
        pages = [(list(items), version) async for items, version in cluster.pages(maps, metadata_only=True)]
        assert [len(items) for items, _ in pages] == [FIRST_PAGE, 7]
        assert sorted(item["metadata"]["name"] for items, _ in pages for item in items) == names
        assert await cluster.version(maps) == pages[-1][1]
        watch = cluster.watch(maps, pages[-1][1], metadata_only=True)
        await cluster.create(maps, config_map("z"))
        event = await asyncio.wait_for(anext(watch), 30)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "z")
        assert "data" not in event["object"]
        await watch.aclose()

    async def test_a_watch_without_events_ends_by_itself(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "secrets", namespace=namespace)
        ((_, version),) = [page async for page in cluster.pages(maps, metadata_only=True)]
        events = [event async for event in cluster.watch(maps, version, for_s=1, metadata_only=True)]
        assert {event["type"] for event in events} <= {"BOOKMARK"}

    async def test_an_empty_list_is_a_list(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "secrets", namespace=namespace)
        ((items, version),) = [page async for page in cluster.pages(maps, metadata_only=True)]
        assert items == []
        assert version.isdecimal()

    async def test_not_found_differs_from_rejected(self, cluster: ApiClient, namespace: str) -> None:
        maps = path_to("", "v1", "configmaps", namespace=namespace)
        with pytest.raises(NotFound, match='configmaps "a" not found'):
            await cluster.get(f"{maps}/a", metadata_only=True)
        with pytest.raises(RequestRejected, match="Not A Name"):
            await cluster.request("POST", maps, body=config_map("Not A Name"))
        with pytest.raises(NotFound):
            await anext(cluster.pages("/apis/no.such.group/v1/things", metadata_only=True))


@asynccontextmanager
async def answering(*answers: bytes | None) -> AsyncIterator[ApiClient]:
    async with brief_server(*answers) as url:
        cluster = ApiClient(Credentials(url, fixed("secret")))
        try:
            yield cluster
        finally:
            await cluster.aclose()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, Unavailable),
        (b"", Unavailable),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy", Unavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", Unavailable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", InvalidResponse),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nstop", RequestRejected),
    ],
    ids=["silence", "closed", "503", "a proxy's page", "no object", "403"],
)
async def test_temporary_failures_differ_from_permanent_ones(answer: bytes | None, kind: type[ClusterError]) -> None:
    async with answering(answer) as cluster:
        with pytest.raises(ClusterError, match="/version") as failure:
            await cluster.request("GET", "/version", timeout_s=0.3 if answer is None else 60)
        assert type(failure.value) is kind


async def test_an_event_may_be_long_and_arrive_in_pieces() -> None:
    event = {"type": "ADDED", "object": {"metadata": {"annotations": {"a": "x" * 500_000}}}}
    line = json.dumps(event).encode() + b"\n"
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    pieces = [line[start : start + 70_000] for start in range(0, len(line), 70_000)]
    async with answering(head, *pieces, line + line[:10]) as cluster:
        assert [watched async for watched in cluster.watch("/api/v1/pods", "1", metadata_only=True)] == [event, event]


async def test_a_line_beyond_the_limit_ends_the_watch() -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    async with answering(head, *[b"x" * 2**20] * 9) as cluster:
        with pytest.raises(Unavailable, match="is longer than"):
            await anext(cluster.watch("/api/v1/pods", "1", metadata_only=True))


async def test_a_failed_connection_names_the_watch() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    async with answering(head) as cluster:
        with pytest.raises(Unavailable, match="watch /api/v1/pods: the connection failed"):
            await anext(cluster.watch("/api/v1/pods", "1", metadata_only=True))
