from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from mldiagnostics.identity import fallback_cluster_name
from mldiagnostics_kube.client.apiserver import Unavailable
from mldiagnostics_kube.installation.cluster_name import cluster_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

GKE = {
    "project/project-id": "p-1",
    "instance/attributes/cluster-location": "europe-west4",
    "instance/attributes/cluster-name": "train\n",
}
KUBEADM_ON_GCE = {"project/project-id": "p-1"}


@asynccontextmanager
async def metadata_server(attributes: Mapping[str, str]) -> AsyncIterator[dict[str, str]]:
    """Run a metadata server as documented for Compute Engine; yield the environment for it."""

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


UID = "1f0e9a3c-0000-4000-8000-000000000000"
NOBODY = {"GCE_METADATA_HOST": "127.0.0.1:1"}


async def kube_system(path: str) -> dict[str, Any]:
    assert path == "/api/v1/namespaces/kube-system"
    return {"metadata": {"uid": UID}}


async def unavailable(path: str) -> dict[str, Any]:
    raise Unavailable(path)


async def test_a_configured_name_is_used() -> None:
    async with metadata_server(GKE) as environ:
        assert await cluster_name("mine", environ, unavailable) == "mine"


async def test_on_gke_the_name_is_read_from_the_metadata_server(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = aiohttp.ClientTimeout(total=60)
    monkeypatch.setattr("mldiagnostics_kube.installation.cluster_name._METADATA_TIMEOUT", limit)
    async with metadata_server(GKE) as environ:
        assert await cluster_name("", environ, unavailable) == "projects/p-1/locations/europe-west4/clusters/train"


@pytest.mark.parametrize("attributes", [{}, KUBEADM_ON_GCE], ids=["none", "not-gke"])
async def test_elsewhere_the_name_is_made_from_the_uid_of_kube_system(attributes: Mapping[str, str]) -> None:
    async with metadata_server(attributes) as environ:
        assert await cluster_name("", environ, kube_system) == fallback_cluster_name(UID)


async def test_without_a_metadata_server_the_name_is_made_from_the_uid() -> None:
    assert await cluster_name("", NOBODY, kube_system) == fallback_cluster_name(UID)


async def test_an_unavailable_api_server_is_an_error() -> None:
    with pytest.raises(Unavailable, match="kube-system"):
        await cluster_name("", NOBODY, unavailable)
