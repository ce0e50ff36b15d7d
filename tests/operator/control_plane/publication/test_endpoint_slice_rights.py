"""The EndpointSlice of a Service without selector on a real API server, with the rights of the chart."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_kube.client.apiserver import RequestRejected, path_to
from mldiagnostics_operator.control_plane.publication.endpoint_slice import EndpointSlice
from support.cluster.publications import account

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

DEADLINE_S = 60
SERVICE = "control"
PORTS = [{"name": "https", "port": 8443}]
RIGHTS = [("services", "get"), ("endpointslices", "get"), ("endpointslices", "create"), ("endpointslices", "update")]


def rule(resource: str, verb: str) -> dict[str, Any]:
    named = {} if verb == "create" else {"resourceNames": [SERVICE, f"{SERVICE}-ipv4", f"{SERVICE}-ipv6"]}
    return {"apiGroups": ["", "discovery.k8s.io"], "resources": [resource], "verbs": [verb], **named}


def slice_of(client: ApiClient, namespace: str, pod: str, address: str) -> EndpointSlice:
    ports = {"https": 8443}
    return EndpointSlice(
        client, namespace=namespace, service=SERVICE, address=address, pod=(pod, f"uid-of-{pod}"), ports=ports
    )


@asynccontextmanager
async def running(work: EndpointSlice) -> AsyncIterator[None]:
    task = asyncio.create_task(work.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
    assert task.cancelled()


class Cluster:
    """A namespace with the Service, as its clients see it."""

    def __init__(self, admin: ApiClient, namespace: str) -> None:
        self.admin = admin
        self.namespace = namespace
        self.slices = path_to("discovery.k8s.io", "v1", "endpointslices", namespace=namespace)

    async def make_service(self) -> str:
        services = path_to("", "v1", "services", namespace=self.namespace)
        body = {"metadata": {"name": SERVICE}, "spec": {"ports": PORTS}}
        return str((await self.admin.create(services, body))["metadata"]["uid"])

    async def leads_to(self) -> list[str] | None:
        """Return the pods to which the Service leads; None without a slice."""
        items = await self.admin.items(self.slices, dict, labels=f"kubernetes.io/service-name={SERVICE}")
        if not items:
            return None
        (item,) = items
        assert [(port["name"], port["port"]) for port in item["ports"]] == [("https", 8443)]
        return [endpoint["targetRef"]["name"] for endpoint in item["endpoints"] or ()]

    async def owners(self) -> list[str]:
        items = await self.admin.items(self.slices, dict)
        return [owner["uid"] for item in items for owner in item["metadata"]["ownerReferences"]]

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not await holds():  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.02)

    async def until_leading(self, *pods: str) -> None:
        async def leads() -> bool:
            return await self.leads_to() == list(pods)

        await self.until(leads)


@pytest.mark.parametrize("addresses", [("10.1.0.1", "10.1.0.2"), ("fd00::1", "fd00::2")])
async def test_the_service_leads_to_the_newest_leader_and_to_nobody_after_the_last(
    api_server: ApiServer, admin: ApiClient, namespace: str, addresses: tuple[str, str]
) -> None:
    cluster = Cluster(admin, namespace)
    uid = await cluster.make_service()
    rules = [(namespace, rule(*right)) for right in RIGHTS]
    async with account(api_server, admin, namespace, rules) as client:
        first, second = (slice_of(client, namespace, f"pod-{address}", address) for address in addresses)
        async with running(first):
            await cluster.until_leading(f"pod-{addresses[0]}")
            assert await cluster.owners() == [uid]
            async with running(second):
                await cluster.until_leading(f"pod-{addresses[1]}")
        assert await cluster.leads_to() == []


@pytest.mark.parametrize(("resource", "verb"), RIGHTS)
async def test_every_right_is_needed(
    api_server: ApiServer, admin: ApiClient, namespace: str, resource: str, verb: str
) -> None:
    """Without one of its rights a leader cannot take the Service over."""
    cluster = Cluster(admin, namespace)
    await cluster.make_service()
    rules = [(namespace, rule(*right)) for right in RIGHTS if right != (resource, verb)]
    if verb == "update":
        work = slice_of(admin, namespace, "earlier", "10.1.0.1")
        async with running(work):
            await cluster.until_leading("earlier")
    before = await cluster.leads_to()
    async with account(api_server, admin, namespace, rules) as client:
        with pytest.raises(RequestRejected, match=f'cannot {verb} resource "{resource}"'):
            await slice_of(client, namespace, "later", "10.1.0.2")._write()
    assert await cluster.leads_to() == before
