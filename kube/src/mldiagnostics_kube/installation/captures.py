"""Requests for MLDiagnosticsConnections that a program makes for its user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.resources import CONNECTIONS

from mldiagnostics_kube.client.apiserver import path_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_kube.client.api_client import ApiClient


STRICT: Final = ("fieldValidation", "Strict")
"""An older resource would drop the fields that it does not have, and its operator capture other pods."""


def path_of_capture(namespace: str, name: str) -> str:
    """Return the URL path of an object."""
    return path_to(*CONNECTIONS.gvr, namespace=namespace, name=name)


async def create_capture(client: ApiClient, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Create an object and return it. Raises `ClusterError`."""
    collection = path_to(*CONNECTIONS.gvr, namespace=namespace)
    return await client.request("POST", collection, query=[STRICT], body=body)


async def cancel_capture(client: ApiClient, namespace: str, name: str) -> dict[str, Any]:
    """Cancel a capture, which keeps recorded traces. Raises `ClusterError`."""
    return await client.patch(path_of_capture(namespace, name), {"spec": {"cancel": True}})
