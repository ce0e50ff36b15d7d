from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_operator.control_plane.publication.endpoint_slice import EndpointSlice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver


class Slices:
    def __init__(self, cluster: ApiClient, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.path = path_to("discovery.k8s.io", "v1", "endpointslices", namespace=namespace, name="plane-ipv4")

    @asynccontextmanager
    async def leader(self, address: str) -> AsyncIterator[None]:
        """Lead with a pod of this address."""
        uid = "00000000-0000-0000-0000-000000000001"
        written = EndpointSlice(
            self.cluster,
            namespace=self.namespace,
            service="plane",
            address=address,
            pod=("pod", uid),
            ports={"https": 8443},
        )
        work = asyncio.create_task(written.run())
        try:
            await self.until([address])
            yield
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def addresses(self) -> list[str]:
        try:
            body: dict[str, Any] = await self.cluster.get(self.path)
        except NotFound:
            return ["no slice"]
        assert body["metadata"]["labels"]["kubernetes.io/service-name"] == "plane"
        assert [port["port"] for port in body["ports"]] == [8443]
        return [address for endpoint in body["endpoints"] or () for address in endpoint["addresses"]]

    async def until(self, addresses: list[str]) -> None:
        async with asyncio.timeout(60):
            while await self.addresses() != addresses:  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.02)


async def test_the_service_leads_to_the_leader_only(cluster: ApiClient, namespace: str) -> None:
    slices = Slices(cluster, namespace)
    service = {"metadata": {"name": "plane"}, "spec": {"ports": [{"name": "https", "port": 8443}]}}
    await cluster.create(path_to("", "v1", "services", namespace=namespace), service)
    async with slices.leader("10.0.0.1"):
        async with slices.leader("10.0.0.2"):
            pass
        # The second leader has left; the first one, which still drains, does not lead again.
        assert await slices.addresses() == []
    async with slices.leader("10.0.0.3"):
        pass
    assert await slices.addresses() == []
    outer = slices.leader("10.0.0.4")
    await outer.__aenter__()
    inner = slices.leader("10.0.0.5")
    await inner.__aenter__()
    await outer.__aexit__(None, None, None)
    assert await slices.addresses() == ["10.0.0.5"]  # the former leader leaves the slice of another
    await inner.__aexit__(None, None, None)
