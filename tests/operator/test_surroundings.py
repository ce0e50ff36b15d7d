from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from mldiagnostics.identity import fallback_cluster_name
from mldiagnostics_operator.cluster import path_to
from mldiagnostics_operator.surroundings import ADDON_NAMESPACE, cluster_name, managed_elsewhere, missing
from support.definitions import install

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mldiagnostics_operator.cluster import Cluster

GKE = {
    "project/project-id": "p-1",
    "instance/attributes/cluster-location": "europe-west4",
    "instance/attributes/cluster-name": "train\n",
}
KUBEADM_ON_GCE = {"project/project-id": "p-1"}


@asynccontextmanager
async def metadata_server(attributes: Mapping[str, str]) -> AsyncIterator[dict[str, str]]:
    """A metadata server as documented for Compute Engine; gives the environment that points to it."""

    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Metadata-Flavor") != "Google":
            raise web.HTTPForbidden
        value = attributes.get(request.match_info["key"])
        if value is None:
            raise web.HTTPNotFound
        return web.Response(text=value)

    app = web.Application()
    app.router.add_get("/computeMetadata/v1/{key:.+}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield {"GCE_METADATA_HOST": f"127.0.0.1:{runner.addresses[0][1]}"}
    finally:
        await runner.cleanup()


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_the_name_is_the_configured_one(self, cluster: Cluster) -> None:
        async with metadata_server(GKE) as environ:
            assert await cluster_name("mine", environ, cluster) == "mine"

    async def test_the_name_is_that_of_gke(self, cluster: Cluster) -> None:
        async with metadata_server(GKE) as environ:
            assert await cluster_name("", environ, cluster) == "projects/p-1/locations/europe-west4/clusters/train"

    @pytest.mark.parametrize("attributes", [{}, KUBEADM_ON_GCE], ids=["none", "not-gke"])
    async def test_elsewhere_the_name_is_made_of_the_uid(self, attributes: Mapping[str, str], cluster: Cluster) -> None:
        namespace = await cluster.get(path_to("", "v1", "namespaces", name="kube-system"))
        async with metadata_server(attributes) as environ:
            name = await cluster_name("", environ, cluster)
        assert name == fallback_cluster_name(namespace["metadata"]["uid"])

    async def test_without_a_metadata_server_too(self, cluster: Cluster) -> None:
        assert (await cluster_name("", {"GCE_METADATA_HOST": "127.0.0.1:1"}, cluster)).startswith("k8s-")

    async def test_the_managed_addon_is_known_by_its_namespace_while_it_stays(self, cluster: Cluster) -> None:
        await install(cluster)
        assert await missing(cluster) is None
        assert await managed_elsewhere(cluster) is None
        spaces = path_to("", "v1", "namespaces")
        made = await cluster.create(spaces, {"metadata": {"name": ADDON_NAMESPACE}})
        try:
            assert await managed_elsewhere(cluster) == f"the namespace {ADDON_NAMESPACE} exists"
        finally:
            await cluster.delete(f"{spaces}/{ADDON_NAMESPACE}", uid=made["metadata"]["uid"])
        assert await managed_elsewhere(cluster) is None, "it is being deleted"
