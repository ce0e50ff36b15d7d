from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.preflight import ADDON_NAMESPACE, managed_addon, missing_resource
from support.cluster.definitions import install

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient


@pytest.mark.apiserver
class TestAgainstARealServer:
    async def test_the_managed_addon_is_recognised_by_its_namespace(self, cluster: ApiClient) -> None:
        await install(cluster)
        assert await missing_resource(cluster, [CONNECTIONS]) is None
        assert await managed_addon(cluster) is None
        spaces = path_to("", "v1", "namespaces")
        made = await cluster.create(spaces, {"metadata": {"name": ADDON_NAMESPACE}})
        try:
            assert await managed_addon(cluster) == f"the namespace {ADDON_NAMESPACE} exists"
        finally:
            await cluster.delete(f"{spaces}/{ADDON_NAMESPACE}", uid=made["metadata"]["uid"])
        assert await managed_addon(cluster) is None, "it is being deleted"
