from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.resources import CONNECTIONS, Resource
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.captures.controller import CaptureController
from mldiagnostics_operator.controller import WatchedResource
from mldiagnostics_operator.preflight import missing_resource
from mldiagnostics_operator.watch_lag import WatchLag
from mldiagnostics_operator.watching import list_versions, watch
from support.cluster.definitions import DEFINITIONS, connection, connections, install, permissive

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_operator.controller import Observe

pytestmark = pytest.mark.apiserver

DEADLINE_S = 60


class Observer:
    """Keeps the events of some namespaces."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = namespaces
        self.events: list[tuple[str, str]] = []
        self.changed = asyncio.Event()

    def observe(self, body: Mapping[str, Any], event: str) -> None:
        if body["metadata"]["namespace"] in self.namespaces:
            self.events.append((body["metadata"]["name"], event))
            self.changed.set()

    async def sees(self, *expected: tuple[str, str]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not set(expected) <= set(self.events):
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def watched(
    cluster: ApiClient, observe: Observe, *namespaces: str, others: Sequence[WatchedResource] = ()
) -> AsyncIterator[asyncio.Event]:
    """Run the watch of captures and of other resources; yields an event that SIGTERM sets, as in the product."""
    stopped = asyncio.Event()

    def handle_signals() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)

    before = asyncio.all_tasks()
    resource = WatchedResource(resource=CONNECTIONS, field_selector=CaptureController.field_selector, observe=observe)
    task = asyncio.create_task(watch([resource, *others], cluster, namespaces, started=handle_signals))
    try:
        yield stopped
    finally:
        task.cancel()
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), DEADLINE_S)
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGINT)
    assert task.cancelled()
    # If cancelled between two attempts, kopf leaves one idle task that would end a pause.
    left = {task.get_name() for task in asyncio.all_tasks() - before}
    assert all(name.startswith("pause-waiter for ") for name in left), "kopf leaves tasks behind"


async def finish(cluster: ApiClient, path: str, phase: str) -> None:
    await cluster.patch(f"{path}/status", {"status": {"phase": phase}})


async def test_only_unfinished_captures_are_delivered(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    path = connections(namespace)
    for name in ("old", "waiting"):
        await cluster.create(path, connection(name))
    await finish(cluster, f"{path}/old", "Succeeded")
    observer = Observer(namespace)
    async with watched(cluster, observer.observe):
        await observer.sees(("waiting", "seen"))
        made = await cluster.create(path, connection("new"))
        await observer.sees(("new", "seen"))
        await finish(cluster, f"{path}/new", "Running")
        await finish(cluster, f"{path}/waiting", "Failed")
        await cluster.delete(f"{path}/new", uid=made["metadata"]["uid"])
        await observer.sees(("waiting", "gone"), ("new", "gone"))
    assert "old" not in dict(observer.events)
    waiting = await cluster.get(f"{path}/waiting")
    assert "finalizers" not in waiting["metadata"]
    assert "annotations" not in waiting["metadata"]


async def test_only_the_named_namespaces_are_watched(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    observer = Observer(namespace, "default")
    async with watched(cluster, observer.observe, namespace):
        await cluster.create(connections("default"), connection(f"of-{namespace}"))
        await cluster.create(connections(namespace), connection("mine"))
        await observer.sees(("mine", "seen"))
    assert [name for name, _ in observer.events] == ["mine"]


async def test_each_resource_has_its_own_observer(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    widgets = Resource(kind="Widget", plural="widgets", group=f"{namespace}.example.com", version="v1")
    await cluster.create(DEFINITIONS, permissive(widgets.api_version, widgets.kind))
    async with asyncio.timeout(DEADLINE_S):
        while await missing_resource(cluster, [widgets]):  # noqa: ASYNC110 - the API server is polled
            await asyncio.sleep(0.05)
    captures, others = Observer(namespace), Observer(namespace)
    watched_widgets = WatchedResource(resource=widgets, observe=others.observe)
    async with watched(cluster, captures.observe, namespace, others=[watched_widgets]):
        await cluster.create(connections(namespace), connection("capture"))
        body = {"apiVersion": widgets.api_version, "kind": widgets.kind, "metadata": {"name": "widget"}}
        await cluster.create(path_to(*widgets.gvr, namespace=namespace), body)
        await captures.sees(("capture", "seen"))
        await others.sees(("widget", "seen"))
    assert {name for name, _ in captures.events} == {"capture"}
    assert {name for name, _ in others.events} == {"widget"}


async def seen_across(cluster: ApiClient, namespace: str, disturb: Callable[[], None]) -> Observer:
    """Check that objects from before and after the disturbance are seen."""
    await install(cluster)
    path = connections(namespace)
    observer = Observer(namespace)
    async with watched(cluster, observer.observe):
        await cluster.create(path, connection("before"))
        await observer.sees(("before", "seen"))
        for n in range(20):
            await cluster.create(path_to("", "v1", "configmaps", namespace=namespace), {"metadata": {"name": f"c{n}"}})
        await asyncio.to_thread(disturb)
        await cluster.create(path, connection("after"))
        await observer.sees(("after", "seen"))
    return observer


async def test_the_watch_goes_on_when_the_api_server_restarts(
    cluster: ApiClient, namespace: str, api_server: ApiServer
) -> None:
    await seen_across(cluster, namespace, api_server.restart)


async def test_the_watch_lists_again_when_its_resource_version_has_expired(
    cluster: ApiClient, namespace: str, api_server: ApiServer
) -> None:
    observer = await seen_across(cluster, namespace, api_server.forget_history)
    assert observer.events.count(("before", "seen")) > 1, "the watch continued from its old resource version"


async def test_signal_handlers_of_the_process_stay(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    await cluster.create(connections(namespace), connection("one"))
    observer = Observer(namespace)
    async with watched(cluster, observer.observe) as stopped:
        await observer.sees(("one", "seen"))
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stopped.wait(), DEADLINE_S)
        await cluster.create(connections(namespace), connection("two"))
        await observer.sees(("two", "seen"))


async def listed(cluster: ApiClient, namespaces: Collection[str]) -> dict[str, str]:
    return await list_versions(cluster, CONNECTIONS, CaptureController.field_selector, namespaces)


async def test_the_listed_objects_are_those_that_the_watch_delivers(cluster: ApiClient, namespace: str) -> None:
    await install(cluster)
    assert await listed(cluster, [namespace]) == {}
    path = connections(namespace)
    for name in ("old", "new"):
        await cluster.create(path, connection(name))
    await finish(cluster, f"{path}/old", "Succeeded")
    versions = await listed(cluster, [namespace])
    assert versions.keys() == {(await cluster.get(f"{path}/new"))["metadata"]["uid"]}
    assert versions.items() <= (await listed(cluster, ())).items()

    lag, observer = WatchLag(), Observer(namespace)
    assert lag.compare(versions, 0.0) == 0.0
    assert lag.compare(versions, 60.0) == 60.0, "the watch has not started yet"

    def observe(body: Mapping[str, Any], event: str) -> None:
        lag.observe(body, event)
        observer.observe(body, event)

    async with watched(cluster, observe, namespace):
        await observer.sees(("new", "seen"))
    assert lag.compare(await listed(cluster, [namespace]), 120.0) == 0.0
