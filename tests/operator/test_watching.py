from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.apiserver import path_to
from mldiagnostics_operator.captures.controller import CaptureController
from mldiagnostics_operator.controller import WatchedResource
from mldiagnostics_operator.freshness import Freshness
from mldiagnostics_operator.watching import list_versions, watch
from support.definitions import connection, connections, install

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_operator.controller import Observe

pytestmark = pytest.mark.apiserver

DEADLINE_S = 30


class Witness:
    """Keeps what the watch brings of some namespaces."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = namespaces
        self.events: list[tuple[str, str]] = []
        self.news = asyncio.Event()

    def observe(self, body: Mapping[str, Any], event: str) -> None:
        if body["metadata"]["namespace"] in self.namespaces:
            self.events.append((body["metadata"]["name"], event))
            self.news.set()

    async def sees(self, *expected: tuple[str, str]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not set(expected) <= set(self.events):
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def watched(cluster: ApiClient, observe: Observe, *namespaces: str) -> AsyncIterator[asyncio.Event]:
    """Run the watch; gives an event that SIGTERM sets, as in the product."""
    told = asyncio.Event()

    def listen() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)

    before = asyncio.all_tasks()
    resource = WatchedResource(resource=CONNECTIONS, field_selector=CaptureController.field_selector, observe=observe)
    task = asyncio.create_task(watch([resource], cluster, namespaces, started=listen))
    try:
        yield told
    finally:
        task.cancel()
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), DEADLINE_S)
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGINT)
    assert task.cancelled()
    # Cancelled between two attempts, kopf forgets the one that would end a pause; it holds nothing.
    left = {task.get_name() for task in asyncio.all_tasks() - before}
    assert all(name.startswith("pause-waiter for ") for name in left), "kopf leaves tasks behind"


async def finish(cluster: ApiClient, path: str, phase: str) -> None:
    await cluster.patch(f"{path}/status", {"status": {"phase": phase}})


async def test_unfinished_captures_come_and_finished_ones_never(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    path = connections(namespace)
    for name in ("old", "waiting"):
        await cluster.create(path, connection(name))
    await finish(cluster, f"{path}/old", "Succeeded")
    witness = Witness(namespace)
    async with watched(cluster, witness.observe):
        await witness.sees(("waiting", "seen"))
        made = await cluster.create(path, connection("new"))
        await witness.sees(("new", "seen"))
        await finish(cluster, f"{path}/new", "Running")
        await finish(cluster, f"{path}/waiting", "Failed")
        await cluster.delete(f"{path}/new", uid=made["metadata"]["uid"])
        await witness.sees(("waiting", "gone"), ("new", "gone"))
    assert "old" not in dict(witness.events)
    stands = await cluster.get(f"{path}/waiting")
    assert "finalizers" not in stands["metadata"]
    assert "annotations" not in stands["metadata"]


async def test_only_the_named_namespaces_are_watched(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    witness = Witness(namespace, "default")
    async with watched(cluster, witness.observe, namespace):
        await cluster.create(connections("default"), connection(f"of-{namespace}"))
        await cluster.create(connections(namespace), connection("mine"))
        await witness.sees(("mine", "seen"))
    assert [name for name, _ in witness.events] == ["mine"]


async def seen_across(cluster: ApiClient, namespace: str, disturb: Callable[[], None]) -> Witness:
    """Show that what is created before and after the disturbance is seen; gives who saw it."""
    await install(cluster)
    path = connections(namespace)
    witness = Witness(namespace)
    async with watched(cluster, witness.observe):
        await cluster.create(path, connection("before"))
        await witness.sees(("before", "seen"))
        for n in range(20):
            await cluster.create(path_to("", "v1", "configmaps", namespace=namespace), {"metadata": {"name": f"c{n}"}})
        await asyncio.to_thread(disturb)
        await cluster.create(path, connection("after"))
        await witness.sees(("after", "seen"))
    return witness


async def test_the_watch_goes_on_when_the_api_server_restarts(
    cluster: ApiClient, namespace: str, api_server: ApiServer
) -> None:
    await seen_across(cluster, namespace, api_server.restart)


async def test_the_watch_starts_over_when_its_place_in_history_is_gone(
    cluster: ApiClient, namespace: str, api_server: ApiServer
) -> None:
    witness = await seen_across(cluster, namespace, api_server.forget_history)
    assert witness.events.count(("before", "seen")) > 1, "it went on from where it was"


async def test_signals_stay_ours(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    await cluster.create(connections(namespace), connection("one"))
    witness = Witness(namespace)
    async with watched(cluster, witness.observe) as told:
        await witness.sees(("one", "seen"))
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(told.wait(), DEADLINE_S)
        await cluster.create(connections(namespace), connection("two"))
        await witness.sees(("two", "seen"))


async def listed(cluster: ApiClient, namespaces: Collection[str]) -> dict[str, str]:
    return await list_versions(cluster, CONNECTIONS, CaptureController.field_selector, namespaces)


async def test_what_stands_in_the_server_is_what_the_watch_brings(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    assert await listed(cluster, [namespace]) == {}
    path = connections(namespace)
    for name in ("old", "new"):
        await cluster.create(path, connection(name))
    await finish(cluster, f"{path}/old", "Succeeded")
    stands = await listed(cluster, [namespace])
    assert stands.keys() == {(await cluster.get(f"{path}/new"))["metadata"]["uid"]}
    assert stands.items() <= (await listed(cluster, ())).items()

    freshness, witness = Freshness(), Witness(namespace)
    assert freshness.compare(stands, 0.0) == 0.0
    assert freshness.compare(stands, 60.0) == 60.0, "nothing is watched yet"

    def observe(body: Mapping[str, Any], event: str) -> None:
        freshness.observe(body, event)
        witness.observe(body, event)

    async with watched(cluster, observe, namespace):
        await witness.sees(("new", "seen"))
    assert freshness.compare(await listed(cluster, [namespace]), 120.0) == 0.0
