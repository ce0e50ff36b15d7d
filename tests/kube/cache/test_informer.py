"""An informer over scripted lists and watches: one object that the store cannot read stops no other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from mldiagnostics_kube.cache.informer import Backoff, Informer, NoInformerMetrics, SyncState
from mldiagnostics_kube.cache.object_store import key_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import pytest
    from mldiagnostics_kube.client.api_client import ApiClient

DEADLINE_S = 20
PUT, REMOVE = "unreadable", "stuck"


def item(name: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ml", "resourceVersion": version}}


class FragileStore:
    """Keys of objects; some objects raise."""

    left_out = 0

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def __len__(self) -> int:
        return len(self.keys)

    def put(self, item: Mapping[str, Any]) -> None:
        if item["metadata"]["name"] == PUT:
            raise OverflowError("date value out of range")
        self.keys.add(key_of(item))

    def remove(self, item: Mapping[str, Any]) -> None:
        if item["metadata"]["name"] == REMOVE:
            raise KeyError(REMOVE)
        self.keys.discard(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        self.keys &= keys


class ScriptedApi:
    """A list, then one watch that ends and one that stays open."""

    def __init__(self) -> None:
        self.lists = 0
        self.versions: list[str] = []
        self.reopened = asyncio.Event()

    async def pages(self, _path: str, **_: object) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        self.lists += 1
        yield [item("first"), item(PUT), item(REMOVE), item("second")], "5"

    async def watch(self, _path: str, version: str, **_: object) -> AsyncIterator[dict[str, Any]]:
        self.versions.append(version)
        if len(self.versions) > 1:
            self.reopened.set()
            await asyncio.Event().wait()
        yield {"type": "MODIFIED", "object": item(PUT, "6")}
        yield {"type": "DELETED", "object": item(REMOVE, "7")}
        yield {"type": "ADDED", "object": item("third", "8")}
        yield {"type": "MODIFIED", "object": item(PUT, "9")}


async def test_an_object_that_the_store_cannot_read_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    api, store = ScriptedApi(), FragileStore()
    informer = Informer(
        "pods",
        ["/api/v1/pods"],
        cluster=cast("ApiClient", api),
        store=store,
        metrics=NoInformerMetrics(),
        backoff=Backoff(shortest_s=0.01, longest_s=0.02),
    )
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            await api.reopened.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (api.lists, api.versions) == (1, ["5", "9"])
    assert store.keys == {"ml/first", "ml/stuck", "ml/second", "ml/third"}
    assert informer.state is SyncState.FOLLOWED
    assert caplog.text.count("skipped ml/unreadable") == 3
    assert caplog.text.count("skipped ml/stuck") == 1
