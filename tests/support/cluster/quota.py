"""A quota of objects, in place of the controller that counts them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics_kube.client.apiserver import Conflict, path_to

if TYPE_CHECKING:
    from mldiagnostics_api.resources import Resource
    from mldiagnostics_kube.client.api_client import ApiClient


async def limit_objects(cluster: ApiClient, namespace: str, resource: Resource, most: int) -> None:
    """Let the API server reject new objects of a kind with a 403 once a namespace has so many."""
    path, count = path_to("", "v1", "resourcequotas", namespace=namespace), f"count/{resource.definition_name}"
    hard = {"hard": {count: str(most)}}
    with suppress(Conflict):
        await cluster.create(path, {"metadata": {"name": resource.plural}, "spec": hard})
    await cluster.patch(f"{path}/{resource.plural}/status", {"status": hard | {"used": {count: "0"}}})
