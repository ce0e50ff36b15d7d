"""One collection of a real API server, watched by our client and by both official ones."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import aio, client, config, watch
from mldiagnostics_kube.client.apiserver import path_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

    Event = tuple[str, dict[str, Any]]

pytestmark = pytest.mark.apiserver

LABELS = "watched=true"
LAST = "last"
WATCH_S = 60
LARGE = 500_000
"""Bytes of an object; the status of a capture has up to 512 KiB."""


@pytest.fixture
def synchronous(api_server: ApiServer) -> Iterator[client.CoreV1Api]:
    with config.new_client_from_config(str(api_server.kubeconfig), persist_config=False) as official:
        yield client.CoreV1Api(official)
        official.rest_client.pool_manager.clear()


async def watched_by_us(cluster: ApiClient, path: str, version: str) -> list[Event]:
    """Return the events until the one of the last object."""
    events: list[Event] = []
    async with aclosing(cluster.watch(path, version, labels=LABELS, for_s=WATCH_S)) as stream:
        async for event in stream:
            if event["type"] != "BOOKMARK":
                events.append((event["type"], event["object"]))
            if event["object"]["metadata"].get("name") == LAST:
                break
    return events


def watched_by_official(core: client.CoreV1Api, namespace: str, version: str) -> list[Event]:
    stream = watch.Watch().stream(
        core.list_namespaced_config_map,
        namespace,
        label_selector=LABELS,
        resource_version=version,
        timeout_seconds=WATCH_S,
    )
    events: list[Event] = []
    for event in stream:
        events.append((event["type"], event["raw_object"]))
        if event["object"].metadata.name == LAST:
            stream.close()
            break
    return events


async def watched_by_async(api_server: ApiServer, namespace: str, version: str) -> list[Event]:
    events: list[Event] = []
    official = await aio.config.new_client_from_config(str(api_server.kubeconfig))
    async with official, aio.watch.Watch() as stream:
        core = aio.client.CoreV1Api(official)
        async for event in stream.stream(
            core.list_namespaced_config_map,
            namespace,
            label_selector=LABELS,
            resource_version=version,
            timeout_seconds=WATCH_S,
        ):
            events.append((event["type"], event["raw_object"]))
            if event["object"].metadata.name == LAST:
                break
    return events


async def change(cluster: ApiClient, path: str) -> None:
    """Create, change, select, deselect and delete objects; `last` is the last one."""

    async def create(name: str, *, selected: bool, **data: str) -> str:
        labels = {"watched": str(selected).lower()}
        made = await cluster.create(path, {"metadata": {"name": name, "labels": labels}, "data": data})
        return str(made["metadata"]["uid"])

    kept = await create("kept", selected=True, text="é\u2028ä")
    await create("other", selected=False)
    await cluster.patch(f"{path}/kept", {"data": {"n": "1"}})
    await cluster.patch(f"{path}/other", {"metadata": {"labels": {"watched": "true"}}})
    await cluster.patch(f"{path}/other", {"metadata": {"labels": {"watched": "false"}}})
    await cluster.delete(f"{path}/kept", uid=kept)
    await create("kept", selected=True)
    await create(LAST, selected=True)


async def test_all_clients_see_the_same_events_in_the_same_order(
    cluster: ApiClient, namespace: str, synchronous: client.CoreV1Api, api_server: ApiServer
) -> None:
    path = path_to("", "v1", "configmaps", namespace=namespace)
    before = await cluster.version(path)
    await change(cluster, path)
    ours = await watched_by_us(cluster, path, before)
    assert [(kind, item["metadata"]["name"]) for kind, item in ours] == [
        ("ADDED", "kept"),
        ("MODIFIED", "kept"),
        ("ADDED", "other"),
        ("DELETED", "other"),
        ("DELETED", "kept"),
        ("ADDED", "kept"),
        ("ADDED", LAST),
    ]
    assert await asyncio.to_thread(watched_by_official, synchronous, namespace, before) == ours
    assert await watched_by_async(api_server, namespace, before) == ours
    for kind, item in ours[:-1]:  # a watch resumes from any version that it has seen
        after = ours[ours.index((kind, item)) + 1 :]
        assert await watched_by_us(cluster, path, item["metadata"]["resourceVersion"]) == after


async def test_a_list_has_the_same_objects_and_version(
    cluster: ApiClient, namespace: str, synchronous: client.CoreV1Api
) -> None:
    path = path_to("", "v1", "configmaps", namespace=namespace)
    await change(cluster, path)
    pages = [([*items], version) async for items, version in cluster.pages(path, labels=LABELS)]
    [(items, version)] = pages
    listed = await asyncio.to_thread(
        synchronous.list_namespaced_config_map, namespace, label_selector=LABELS, resource_version=version
    )
    official = client.ApiClient().sanitize_for_serialization(listed)
    for item in official["items"]:
        del item["metadata"]["managedFields"], item["metadata"]["creationTimestamp"]
    for item in items:
        del item["metadata"]["managedFields"], item["metadata"]["creationTimestamp"]  # the same time, other digits
    assert official["items"] == items


async def test_all_clients_read_a_large_object(
    cluster: ApiClient, namespace: str, synchronous: client.CoreV1Api, api_server: ApiServer
) -> None:
    path = path_to("", "v1", "configmaps", namespace=namespace)
    before = await cluster.version(path)
    body = {"metadata": {"name": LAST, "labels": {"watched": "true"}}, "data": {"text": "x" * LARGE}}
    await cluster.create(path, body)
    [(kind, item)] = await watched_by_us(cluster, path, before)
    assert (kind, len(item["data"]["text"])) == ("ADDED", LARGE)
    assert await asyncio.to_thread(watched_by_official, synchronous, namespace, before) == [(kind, item)]
    assert await watched_by_async(api_server, namespace, before) == [(kind, item)]
